import { createCommitFinder, isSameCommit, wholeHashes } from '../history/commit_names.ts'
import type { KnownCommit } from './store_compare.ts'

/** A commit, and every string that signals may have for it. */
export type ResolvedCommit = { commit: string; texts: string[] }

/**
 * Finds the commit that a string names among those of a prompt's history and signals, all in lower case. A short hash names
 * the whole one that it begins. One that begins two is ambiguous (null), unless an entry has exactly this commit. Any other
 * string is itself.
 */
export function resolveCommit(given: string, known: KnownCommit[]): ResolvedCommit | null {
  const texts = [...new Set(known.map(({ text }) => text))]
  const whole = wholeHashes([given, ...texts])
  const find = createCommitFinder(whole)
  const named = find(given)
  const isAmbiguous = named === null && whole.some((text) => isSameCommit(text, given))
  if (isAmbiguous && !known.some(({ text, is_entry }) => is_entry && text === given)) return null
  const commit = named ?? given
  // A short hash counts if it begins no other commit.
  return { commit, texts: [...new Set([commit, ...texts.filter((text) => find(text) === commit)])] }
}
