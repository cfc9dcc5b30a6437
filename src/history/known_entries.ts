import { type CommitOfPrompt, commitId, type EntryToRecord, type KnownEntry } from './identity.ts'

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

/** The known entries as they are changed, by their commits. */
export class KnownEntries {
  readonly #byId: Map<number, KnownEntry>
  readonly #idsByCommit = new Map<string, number[]>()

  constructor(private readonly original: KnownEntry[]) {
    this.#byId = new Map(original.map((entry) => [entry.id, entry]))
    for (const entry of original) this.#addToCommit(entry)
  }

  /** Oldest first. */
  of(commit: CommitOfPrompt): KnownEntry[] {
    const entries = (this.#idsByCommit.get(commitId(commit)) ?? []).flatMap((id) => this.#byId.get(id) ?? [])
    // An entry that became a merge has another commit.
    return entries
      .filter((entry) => commitId(entry) === commitId(commit))
      .sort((a, b) => Number(a.created_at) - Number(b.created_at) || a.id - b.id)
  }

  /** The merges of the same commit into the same branch that have another number. */
  otherMerges({ branch_name, pr_number, ...commit }: EntryToRecord): KnownEntry[] {
    const merges = this.of(commit).filter((entry) => entry.action === 'pr_merged' && entry.branch_name === branch_name)
    return merges.filter((entry) => entry.pr_number !== pr_number)
  }

  replace(from: KnownEntry, to: KnownEntry): 'changed' | 'known' {
    this.#byId.set(from.id, to)
    if (commitId(to) !== commitId(from)) this.#addToCommit(to)
    return isVisibleChange(from, to) ? 'changed' : 'known'
  }

  delete({ id }: KnownEntry): void {
    this.#byId.delete(id)
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

  #addToCommit(entry: KnownEntry): void {
    const key = commitId(entry)
    this.#idsByCommit.set(key, [...(this.#idsByCommit.get(key) ?? []), entry.id])
  }
}
