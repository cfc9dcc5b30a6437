import { isDeepStrictEqual } from 'node:util'
import { commitId, comparePlaces, identityOf, type KnownEntry, OrderedEntries } from './identity.ts'
import { showTitledEntry } from './schema.ts'

export type CommitOfBranch = { prompt_id: number; branch_name: string; commit_sha: string }

export const commitOfBranch = (commit: CommitOfBranch): string => `${commitId(commit)} ${commit.branch_name}`

export const isVisibleChange = (from: KnownEntry, to: KnownEntry): boolean =>
  !isDeepStrictEqual(showTitledEntry(from), showTitledEntry(to))

/** The known entries, changed step by step. */
export class KnownEntries {
  readonly byId = new Map<number, KnownEntry>()
  readonly byIdentity = new OrderedEntries(identityOf)
  /** Of a commit on a branch. */
  readonly ofBranch = new OrderedEntries(commitOfBranch)

  constructor(entries: KnownEntry[]) {
    for (const entry of entries.sort(comparePlaces)) this.#add(entry)
  }

  replace(from: KnownEntry, to: KnownEntry): { outcome: 'changed' | 'known'; stored: KnownEntry } {
    this.delete(from)
    this.#add(to)
    return { outcome: isVisibleChange(from, to) ? 'changed' : 'known', stored: to }
  }

  delete(entry: KnownEntry): void {
    this.byId.delete(entry.id)
    this.byIdentity.delete(entry)
    this.ofBranch.delete(entry)
  }

  #add(entry: KnownEntry): void {
    this.byId.set(entry.id, entry)
    this.byIdentity.add(entry)
    this.ofBranch.add(entry)
  }
}
