// Entries in the order of time, and when two of them are the same one; docs/interface.md states the rule. A client may
// report any number of one commit, so they are searched by bisection.
import { firstIndex } from '../lib/bisect.ts'
import { type CommitOfPrompt, commitKey } from './commit_names.ts'
import type { EntryRow } from './schema.ts'

/** An entry to be written, with the rest of its identity and who reported it. */
export type EntryToRecord = Omit<EntryRow, 'id'> & {
  prompt_id: number
  reopenings: number
  in_git: boolean
  on_github: boolean
  by_call: boolean
  /** A client recorded it first, so its fields stay. */
  as_given: boolean
}

export type KnownEntry = EntryToRecord & { id: number }

/** An entry that a source reports. */
export type ReportedEntry = EntryToRecord & {
  /** The commits that a merge brought to its branch. */
  covers: string[]
  /** False if the source says what happened and not when: it then repeats a known entry of any time. */
  isTimed: boolean
}

/** What makes two entries the same one. */
export type EntryIdentity = Pick<
  EntryToRecord,
  'prompt_id' | 'action' | 'commit_sha' | 'branch_name' | 'pr_number' | 'reopenings'
>

/** An entry that made its commit live on its branch. */
export type LiveEntry = Pick<EntryToRecord, 'prompt_id' | 'branch_name' | 'commit_sha' | 'created_at'> & { id: number }

const liveActions = ['deployed', 'pr_merged']
export const isLive = ({ action }: Pick<EntryToRecord, 'action'>): boolean => liveActions.includes(action)

export const commitId = ({ prompt_id, commit_sha }: CommitOfPrompt): string => `${prompt_id} ${commitKey(commit_sha)}`

/** Entries with the same one are the same, unless it went live again. No name has a line break. */
export const identityOf = (entry: EntryIdentity): string =>
  [commitId(entry), entry.action, entry.branch_name, entry.pr_number, entry.reopenings].join('\n')

type Place = { created_at: Date; id: number }

/** Of two entries at the same time, the one with the lower id came first. */
const comparePlaces = (a: Place, b: Place): number => a.created_at.getTime() - b.created_at.getTime() || a.id - b.id

/** Entries by a key, oldest first. */
export class OrderedEntries {
  readonly #byKey = new Map<string, KnownEntry[]>()

  constructor(private readonly keyOf: (entry: KnownEntry) => string) {}

  of(key: string): readonly KnownEntry[] {
    return this.#byKey.get(key) ?? []
  }

  add(entry: KnownEntry): void {
    const key = this.keyOf(entry)
    const entries = this.#byKey.get(key)
    if (entries) entries.splice(placeOf(entry, entries), 0, entry)
    else this.#byKey.set(key, [entry])
  }

  delete(entry: KnownEntry): void {
    const entries = this.#byKey.get(this.keyOf(entry)) ?? []
    const index = placeOf(entry, entries)
    if (entries[index]?.id === entry.id) entries.splice(index, 1)
  }
}

const placeOf = (entry: KnownEntry, entries: readonly KnownEntry[]): number =>
  firstIndex(entries, (one) => comparePlaces(one, entry) >= 0)

/** What went live on one branch. */
export class LiveOrder {
  readonly #live: LiveEntry[]
  readonly #keys: string[]
  /** The index of the next entry of another commit. */
  readonly #nextOther: number[]

  constructor(live: LiveEntry[]) {
    this.#live = live.toSorted(comparePlaces)
    this.#keys = this.#live.map(({ commit_sha }) => commitKey(commit_sha))
    this.#nextOther = this.#keys.map((_, index) => index + 1)
    for (let index = this.#keys.length - 2; index >= 0; index -= 1) {
      const isSame = this.#keys[index] === this.#keys[index + 1]
      if (isSame) this.#nextOther[index] = this.#nextOther[index + 1] as number
    }
  }

  /** Finds the oldest of these entries of one commit, oldest first, with no other commit live between it and the entry. */
  findUnparted(entry: LiveEntry, candidates: readonly KnownEntry[]): KnownEntry | undefined {
    const isNear = (one: KnownEntry) => comparePlaces(one, entry) > 0 || !this.#isOtherBetween(one, entry)
    const nearest = candidates[firstIndex(candidates, isNear)]
    return nearest && !this.#isOtherBetween(entry, nearest) ? nearest : undefined
  }

  /** Whether another commit went live between two entries of a commit, so that the later one is a rollback. */
  #isOtherBetween(one: LiveEntry, other: LiveEntry): boolean {
    // A retry has the same time.
    if (Number(one.created_at) === Number(other.created_at)) return false
    const [first, last] = comparePlaces(one, other) < 0 ? [one, other] : [other, one]
    const next = firstIndex(this.#live, (entry) => comparePlaces(entry, first) > 0)
    const isSame = this.#keys[next] === commitKey(one.commit_sha)
    const between = this.#live[isSame ? (this.#nextOther[next] as number) : next]
    return between !== undefined && comparePlaces(between, last) < 0
  }
}

const shownFields = [
  'action',
  'user_name',
  'user_email',
  'commit_sha',
  'branch_name',
  'pr_number',
  'pr_url',
  'title',
] as const

const isVisibleChange = (from: KnownEntry, to: KnownEntry): boolean =>
  Number(from.created_at) !== Number(to.created_at) || shownFields.some((field) => from[field] !== to[field])

export type KnownEntryChanges = {
  /** Readers do not see every update: who reported an entry is not shown. */
  updates: { from: KnownEntry; to: KnownEntry; isVisible: boolean }[]
  deletes: KnownEntry[]
}

/** The known entries as they are changed. `withWholeCommit` gives an entry the whole hash of its commit. */
export class KnownEntries {
  readonly #byId = new Map<number, KnownEntry>()
  readonly #byCommit = new OrderedEntries(commitId)
  readonly #byIdentity = new OrderedEntries(identityOf)

  constructor(
    private readonly original: KnownEntry[],
    withWholeCommit: (entry: KnownEntry) => KnownEntry,
  ) {
    for (const entry of original.map(withWholeCommit).sort(comparePlaces)) this.#add(entry)
  }

  /** Oldest first. */
  of(commit: CommitOfPrompt): readonly KnownEntry[] {
    return this.#byCommit.of(commitId(commit))
  }

  /** The entries of an identity, oldest first. */
  sameAs(entry: EntryIdentity): readonly KnownEntry[] {
    return this.#byIdentity.of(identityOf(entry))
  }

  /** The merges of the same commit into the same branch that have another number. */
  otherMerges({ branch_name, pr_number, ...commit }: EntryIdentity): KnownEntry[] {
    const merges = this.of(commit).filter((entry) => entry.action === 'pr_merged' && entry.branch_name === branch_name)
    return merges.filter((entry) => entry.pr_number !== pr_number)
  }

  replace(from: KnownEntry, to: KnownEntry): 'changed' | 'known' {
    this.delete(from)
    this.#add(to)
    return isVisibleChange(from, to) ? 'changed' : 'known'
  }

  delete(entry: KnownEntry): void {
    this.#byId.delete(entry.id)
    this.#byCommit.delete(entry)
    this.#byIdentity.delete(entry)
  }

  changes(): KnownEntryChanges {
    const updates = this.original.flatMap((from) => {
      const to = this.#byId.get(from.id) ?? from
      const isVisible = isVisibleChange(from, to)
      const isSame = !isVisible && (['in_git', 'on_github', 'by_call'] as const).every((who) => from[who] === to[who])
      return isSame ? [] : { from, to, isVisible }
    })
    return { updates, deletes: this.original.filter(({ id }) => !this.#byId.has(id)) }
  }

  #add(entry: KnownEntry): void {
    this.#byId.set(entry.id, entry)
    this.#byCommit.add(entry)
    this.#byIdentity.add(entry)
  }
}
