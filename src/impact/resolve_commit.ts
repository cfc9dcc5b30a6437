import { shortestHash } from './schema_params.ts'
import type { KnownCommit } from './store_compare.ts'

/** A commit, and every string that signals may have for it. */
export type ResolvedCommit = { commit: string; texts: string[] }

/** Of SHA-1 or SHA-256. */
const wholeHash = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/

/**
 * Finds the commit that a string names among those of a prompt's history and signals, all in lower case. A string names the
 * longest known commit that it begins. One that begins two different commits is ambiguous (null), unless an entry has
 * exactly this commit. A whole hash, or a commit that nothing is known of, is itself.
 */
export function resolveCommit(given: string, known: KnownCommit[]): ResolvedCommit | null {
  const texts = [...new Set(known.map(({ text }) => text))]
  const isWhole = (text: string) => !texts.some((other) => other !== text && other.startsWith(text))
  const whole = texts.filter(isWhole)
  const begun = wholeHash.test(given) ? [given] : whole.filter((text) => text.startsWith(given))
  const isEntry = known.some(({ text, is_entry }) => is_entry && text === given)
  if (begun.length > 1 && !isEntry) return null
  const commit = begun.length === 1 ? (begun[0] as string) : given
  /** A short hash counts if it begins no other commit. */
  const names = (text: string) =>
    text.length >= shortestHash &&
    commit.startsWith(text) &&
    !whole.some((other) => !other.startsWith(commit) && other.startsWith(text))
  return { commit, texts: [...new Set([commit, ...texts.filter(names)])] }
}
