import type { Outcome } from '../history/record.ts'
import type { HistoryEntry } from '../history/schema.ts'
import type { EntryOf } from './entries.ts'

export type LinkedPrompt = { id: string; path: string }

/** What a sync needs of the service, whether it is reached by its database or over HTTP. */
export type SyncTarget = {
  /** The prompts that are linked to files of a repository. */
  listLinked(repository: string): Promise<LinkedPrompt[]>
  /** Makes a prompt for a file, and returns its id. */
  createPrompt(name: string, repository: string, path: string): Promise<string>
  /** Links a prompt to another file; says why not when that is not allowed. */
  moveLink(id: string, repository: string, path: string): Promise<string | null>
  /** Records entries, all or nothing, and says what became of each; of a dry run, what would become of it. */
  record(entries: EntryOf<string>[], isDryRun: boolean): Promise<Outcome[]>
  /** Reads a page of the history of a prompt, newest first; null when that is not allowed. */
  readHistory(id: string, page: number): Promise<HistoryPage | null>
  /** Records whether the files of prompts are on the branch. */
  markFiles(files: FileOnBranch[]): Promise<void>
}

/** The part of a page of history that a sync looks at. */
export type HistoryPage = { data: HistoryEntry[]; pagination: { total_pages: number } }

type FileOnBranch = { prompt: string; isPresent: boolean; seenAt: Date }

/** The query of a page, as large as pages are. */
export const historyQuery = (page: number): string => `?page=${page}&limit=100`

/** The body of a call that records either. */
export const toBatch = (entries: EntryOf<string>[], files: FileOnBranch[], isDryRun: boolean) => ({
  entries: entries.map(({ prompt, entry, covers }) => ({ prompt_id: prompt, ...entry, covers })),
  files: files.map(({ prompt, isPresent, seenAt }) => ({
    prompt_id: prompt,
    state: isPresent ? 'present' : 'removed',
    seen_at: seenAt.toISOString(),
  })),
  dry_run: isDryRun,
})
