// Decides when two entries are the same one; docs/interface.md states the rule.
import { commitKey, isSameCommit } from './commit_names.ts'
import type { EntryRow } from './store.ts'

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

/** What makes two entries the same one, unless it went live again. */
export type EntryIdentity = Pick<
  EntryToRecord,
  'prompt_id' | 'action' | 'commit_sha' | 'branch_name' | 'pr_number' | 'reopenings'
>

/** An entry that made its commit live on its branch. Of two at the same time, the one with the lower id came first. */
export type LiveEntry = Pick<EntryToRecord, 'prompt_id' | 'branch_name' | 'commit_sha' | 'created_at'> & { id: number }

const liveActions = ['deployed', 'pr_merged']
export const isLive = ({ action }: Pick<EntryToRecord, 'action'>): boolean => liveActions.includes(action)

export type CommitOfPrompt = Pick<EntryToRecord, 'prompt_id' | 'commit_sha'>

export const commitId = ({ prompt_id, commit_sha }: CommitOfPrompt): string => `${prompt_id} ${commitKey(commit_sha)}`

export const isSameEntry = (one: EntryIdentity, other: EntryIdentity): boolean =>
  one.prompt_id === other.prompt_id &&
  one.action === other.action &&
  one.branch_name === other.branch_name &&
  one.pr_number === other.pr_number &&
  one.reopenings === other.reopenings &&
  commitKey(one.commit_sha) === commitKey(other.commit_sha)

const comparePlaces = (a: LiveEntry, b: LiveEntry): number => Number(a.created_at) - Number(b.created_at) || a.id - b.id

/** Whether another commit went live between two entries of a commit, so that the later one is a rollback. */
export function isOtherBetween(one: LiveEntry, other: LiveEntry, live: LiveEntry[]): boolean {
  // A retry has the same time.
  if (Number(one.created_at) === Number(other.created_at)) return false
  const [first, last] = comparePlaces(one, other) < 0 ? [one, other] : [other, one]
  return live.some(
    (entry) =>
      comparePlaces(first, entry) < 0 &&
      comparePlaces(entry, last) < 0 &&
      !isSameCommit(entry.commit_sha, one.commit_sha),
  )
}
