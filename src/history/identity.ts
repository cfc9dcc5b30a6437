// Decides when two entries are the same one; docs/interface.md states the rule.
import { type CommitOfPrompt, commitKey } from './commit_names.ts'
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
export const comparePlaces = (a: Place, b: Place): number =>
  a.created_at.getTime() - b.created_at.getTime() || a.id - b.id
