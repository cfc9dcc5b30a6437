import { OrderedEntries } from './entry_order.ts'
import {
  type CommitOfPrompt,
  commitId,
  comparePlaces,
  type EntryIdentity,
  identityOf,
  type KnownEntry,
} from './identity.ts'

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
