// Commits are compared ignoring letter case. A hash may be shortened to seven characters, as git does; another name may not:
// release-1 is not release-12, and 20260101 is not 20260101123000.

import { firstIndex } from '../lib/bisect.ts'

const shortest = 7
const hash = /^[0-9a-f]{7,64}$/
/** What may be shortened. Digits alone are a date or a number, unless they have the length of SHA-1 or SHA-256. */
const longHash = /^([0-9]{40}|[0-9]{64}|(?=[0-9]*[a-f])([0-9a-f]{8,40}|[0-9a-f]{64}))$/

/** The spelling by which commits are compared and found. Only ASCII letters, like Postgres' lower() of the column. */
export const commitKey = (commit: string): string => commit.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())

/** Whether a name, as a key, may be a hash that was shortened. */
export const canBeginHash = (name: string): boolean => hash.test(name) && name.length !== 40 && name.length !== 64

const isShortOf = (short: string, long: string): boolean =>
  long.length > short.length && longHash.test(long) && long.startsWith(short) && canBeginHash(short)

/** What a key may be shortened to. */
const beginsOf = (key: string): string[] =>
  Array.from({ length: hash.test(key) ? key.length - shortest : 0 }, (_, index) => key.slice(0, shortest + index))

/** Whether two names, as keys, can be of the same commit. */
export const isSameCommit = (one: string, other: string): boolean =>
  one === other || isShortOf(one, other) || isShortOf(other, one)

/** Finds the one of these commits that a name is of, all as keys: exactly that one, or else the only one that it can be. */
export function createCommitFinder(commits: string[]): (name: string) => string | null {
  const known = new Set(commits)
  const hashes = commits.filter((commit) => longHash.test(commit)).sort()
  return (name) => {
    if (known.has(name)) return name
    // What a name begins sorts right behind it.
    const next = firstIndex(hashes, (commit) => commit >= name)
    const near = [...beginsOf(name).filter((begin) => known.has(begin)), ...hashes.slice(next, next + 2)]
    const same = near.filter((commit) => isSameCommit(commit, name))
    return same.length === 1 ? (same[0] as string) : null
  }
}

/** Those of these keys that are hashes and begin no longer one. */
export function wholeHashes(keys: string[]): string[] {
  // What a key begins sorts right behind it.
  const sorted = [...new Set(keys.filter((key) => longHash.test(key)))].sort()
  return sorted.filter((key, index) => !isShortOf(key, sorted[index + 1] ?? ''))
}

export type Spellings = { low: string; high: string; start: string | null }

/**
 * Where the keys of a commit are: between two keys and, as far as they are shortened, among those that begin alike. Null if
 * the name cannot be shortened.
 */
export function spellingsOf(commit: string): Spellings {
  const key = commitKey(commit)
  if (!hash.test(key)) return { low: key, high: key, start: null }
  return { low: key, high: `${key}g`, start: key.slice(0, shortest) }
}

export type CommitOfPrompt = { prompt_id: number; commit_sha: string }

/**
 * Finds the whole hash of a short one among the entries of its prompt. A short hash that could be one of two commits is
 * neither.
 */
export function createWholeFinder(entries: CommitOfPrompt[]): (commit: CommitOfPrompt) => string {
  const idOf = (promptId: number, key: string) => `${promptId} ${key}`
  const spellings = new Map<string, string>()
  for (const { prompt_id, commit_sha } of entries) {
    const id = idOf(prompt_id, commitKey(commit_sha))
    if (!spellings.has(id)) spellings.set(id, commit_sha)
  }
  const finders = new Map(
    [...Map.groupBy(entries, ({ prompt_id }) => prompt_id)].map(([promptId, ofPrompt]) => {
      const whole = wholeHashes(ofPrompt.map(({ commit_sha }) => commitKey(commit_sha)))
      return [promptId, createCommitFinder(whole)]
    }),
  )
  return ({ prompt_id, commit_sha }) => {
    const key = commitKey(commit_sha)
    const whole = finders.get(prompt_id)?.(key) ?? key
    return whole === key ? commit_sha : (spellings.get(idOf(prompt_id, whole)) as string)
  }
}
