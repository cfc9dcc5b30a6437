// Decides when two names mean the same commit, and when two entries are the same; docs/interface.md states the rules.
// Letter case is ignored. A hash may be shortened to seven characters, as git does. Another name may not: release-1 is not
// release-12, and 20260101 is not 20260101123000.
import { firstIndex } from '../lib/bisect.ts'
import { type EntryRow, liveActions } from './schema.ts'

const shortest = 7
const hash = /^[0-9a-f]{7,64}$/
/** A hash that may be shortened. Only digits are a date or a number, unless they have the length of SHA-1 or SHA-256. */
const longHash = /^([0-9]{40}|[0-9]{64}|(?=[0-9]*[a-f])([0-9a-f]{8,40}|[0-9a-f]{64}))$/

/** Commits are compared and found by this. Changes only ASCII letters, like Postgres' lower() of the column. */
export const commitKey = (commit: string): string => commit.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())

/** Whether a key may be shortened. */
export const isLongHash = (name: string): boolean => longHash.test(name)

/** Whether a key may be a shortened hash. */
export const isShortHash = (name: string): boolean => hash.test(name) && name.length !== 40 && name.length !== 64

const isShortOf = (short: string, long: string): boolean =>
  long.length > short.length && isLongHash(long) && long.startsWith(short) && isShortHash(short)

/** Every hash that a key may be shortened to. */
const beginsOf = (key: string): string[] =>
  Array.from({ length: hash.test(key) ? key.length - shortest : 0 }, (_, index) => key.slice(0, shortest + index))

/** Whether two keys can mean the same commit. */
export const isSameCommit = (one: string, other: string): boolean =>
  one === other || isShortOf(one, other) || isShortOf(other, one)

/** Finds the commit that a name means: the equal one, else the only one that it can mean. All are keys. */
export function createCommitFinder(commits: string[]): (name: string) => string | null {
  const known = new Set(commits)
  const hashes = commits.filter(isLongHash).sort()
  return (name) => {
    if (known.has(name)) return name
    // A hash that begins with the name sorts right behind it. Two are enough to see that it is not the only one.
    const next = firstIndex(hashes, (commit) => commit >= name)
    const near = [...beginsOf(name).filter((begin) => known.has(begin)), ...hashes.slice(next, next + 2)]
    const same = near.filter((commit) => isSameCommit(commit, name))
    return same.length === 1 ? (same[0] as string) : null
  }
}

/** The keys that are hashes, without those that are short for another. */
export function wholeHashes(keys: string[]): string[] {
  // A hash that begins with a key sorts right behind it.
  const sorted = [...new Set(keys.filter(isLongHash))].sort()
  return sorted.filter((key, index) => !isShortOf(key, sorted[index + 1] ?? ''))
}

export type Spellings = { low: string; high: string; start: string | null }

/**
 * The range of the keys that a commit may have: from `low` to `high`, and shorter hashes with the same `start`, which is
 * null if the name cannot be shortened.
 */
export function spellingsOf(commit: string): Spellings {
  const key = commitKey(commit)
  if (!hash.test(key)) return { low: key, high: key, start: null }
  return { low: key, high: `${key}g`, start: key.slice(0, shortest) }
}

export type CommitOfPrompt = { prompt_id: number; commit_sha: string }

export const commitId = ({ prompt_id, commit_sha }: CommitOfPrompt): string => `${prompt_id} ${commitKey(commit_sha)}`

/** Finds the whole hash of a short one among the entries of its prompt. One that fits two commits stays as it is. */
export function createWholeFinder(entries: CommitOfPrompt[]): (commit: CommitOfPrompt) => string {
  // The first spelling of each commit wins, so it is set last.
  const spellings = new Map(entries.toReversed().map((entry) => [commitId(entry), entry.commit_sha]))
  const finders = new Map(
    [...Map.groupBy(entries, ({ prompt_id }) => prompt_id)].map(([promptId, ofPrompt]) => {
      const whole = wholeHashes(ofPrompt.map(({ commit_sha }) => commitKey(commit_sha)))
      return [promptId, createCommitFinder(whole)]
    }),
  )
  return ({ prompt_id, commit_sha }) => {
    const key = commitKey(commit_sha)
    const whole = finders.get(prompt_id)?.(key) ?? key
    return whole === key ? commit_sha : (spellings.get(commitId({ prompt_id, commit_sha: whole })) as string)
  }
}

/** An entry to be written, with the rest of its identity and who reported it. */
export type EntryToRecord = Omit<EntryRow, 'id'> & {
  prompt_id: number
  in_git: boolean
  on_github: boolean
  by_call: boolean
  /** A client recorded it first, so its fields stay. */
  as_given: boolean
  /** The text of the prompt after the change. Undefined if it was not given: a stored one stays. */
  text?: string | undefined
}

/** An entry as it is stored, but without its text. */
export type KnownEntry = EntryToRecord & { id: number; is_change: boolean; has_text: boolean }

/** An entry that a source reports. */
export type ReportedEntry = EntryToRecord & {
  /** The commits that a merge brought to its branch. */
  covers: string[]
  /** False if the source gives no time. The entry then repeats a known one of any time. */
  isTimed: boolean
}

/** The fields that identify an entry. */
export type EntryIdentity = Pick<EntryToRecord, 'prompt_id' | 'action' | 'commit_sha' | 'branch_name' | 'pr_number'>

export const hasLiveAction = ({ action }: Pick<EntryToRecord, 'action'>): boolean => liveActions.includes(action)

/** Two entries with the same identity are the same, unless the commit went live or the pull request was closed twice. */
export const identityOf = (entry: EntryIdentity): string =>
  // No name has a line break.
  [commitId(entry), entry.action, entry.branch_name, entry.pr_number].join('\n')

/** An entry that made its commit live on its branch. */
export type LiveEntry = Pick<EntryToRecord, 'prompt_id' | 'branch_name' | 'commit_sha' | 'created_at'> & { id: number }

type Place = { created_at: Date; id: number }

/** Of two entries at the same time, the one with the lower id came first. */
export const comparePlaces = (a: Place, b: Place): number =>
  a.created_at.getTime() - b.created_at.getTime() || a.id - b.id

/** Entries by a key, oldest first. A client may report a commit any number of times, so they are searched by bisection. */
export class OrderedEntries<Keyed> {
  readonly #byKey = new Map<string, KnownEntry[]>()

  constructor(private readonly keyOf: (entry: Keyed) => string) {}

  of(entry: Keyed): readonly KnownEntry[] {
    return this.#byKey.get(this.keyOf(entry)) ?? []
  }

  /** The first of them at the time of the entry. */
  atTimeOf(entry: EntryToRecord & Keyed): KnownEntry | undefined {
    const entries = this.of(entry)
    const first = entries[placeOf({ ...entry, id: 0 }, entries)]
    return Number(first?.created_at) === Number(entry.created_at) ? first : undefined
  }

  add(entry: KnownEntry & Keyed): void {
    const entries = this.#byKey.get(this.keyOf(entry))
    if (entries) entries.splice(placeOf(entry, entries), 0, entry)
    else this.#byKey.set(this.keyOf(entry), [entry])
  }

  delete(entry: KnownEntry & Keyed): void {
    const entries = this.#byKey.get(this.keyOf(entry)) ?? []
    const index = placeOf(entry, entries)
    if (entries[index]?.id === entry.id) entries.splice(index, 1)
  }
}

const placeOf = (entry: Place, entries: readonly KnownEntry[]): number =>
  firstIndex(entries, (one) => comparePlaces(one, entry) >= 0)

/**
 * A run is consecutive live entries of one commit on a branch; `entries` are live on that branch. Returns the oldest
 * candidate in the same run as the entry: no other commit was live in between. Candidates are given oldest first.
 */
export function createSameRunFinder(entries: LiveEntry[]) {
  const live = entries.sort(comparePlaces)
  const keys = live.map(({ commit_sha }) => commitKey(commit_sha))
  /** Numbers the runs of all commits. */
  const runs: number[] = []
  for (const [index, key] of keys.entries()) runs.push((runs.at(-1) ?? 0) + Number(key !== keys[index - 1]))

  /** Whether another commit went live between two entries of a commit, so that the later one is a rollback. */
  function isOtherBetween(one: LiveEntry, other: LiveEntry): boolean {
    // A retry has the same time.
    if (Number(one.created_at) === Number(other.created_at)) return false
    const [first, last] = comparePlaces(one, other) < 0 ? [one, other] : [other, one]
    const next = firstIndex(live, (entry) => comparePlaces(entry, first) > 0)
    const end = firstIndex(live, (entry) => comparePlaces(entry, last) >= 0)
    return next < end && (keys[next] !== commitKey(one.commit_sha) || runs[next] !== runs[end - 1])
  }

  return (entry: LiveEntry, candidates: readonly KnownEntry[]): KnownEntry | undefined => {
    const isNear = (one: KnownEntry) => comparePlaces(one, entry) > 0 || !isOtherBetween(one, entry)
    const nearest = candidates[firstIndex(candidates, isNear)]
    return nearest && !isOtherBetween(entry, nearest) ? nearest : undefined
  }
}
