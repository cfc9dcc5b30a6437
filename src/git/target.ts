import type { Outcome } from '../history/record.ts'
import type { HistoryBatch, HistoryEntry } from '../history/schema.ts'

/** A file that a prompt is linked to, with the public id of that prompt. */
export type LinkedFile = { id: string; path: string }

/** What a sync needs of the service, whether it is reached by its database or over HTTP. */
export type SyncTarget = {
  /** The files of a repository that prompts are linked to. */
  listLinked(repository: string): Promise<LinkedFile[]>
  /** Makes a prompt for a file, and returns its id. */
  createPrompt(name: string, repository: string, path: string): Promise<string>
  /** Links a prompt to another file; says why not when that is not allowed. */
  moveLink(id: string, repository: string, path: string): Promise<string | null>
  /** Records a batch, all or nothing, and says what became of each entry; of a dry run, what would become of it. */
  recordBatch(batch: HistoryBatch): Promise<Outcome[]>
  /** Reads a page of the history of a prompt, newest first; null when that is not allowed. */
  readHistory(id: string, page: number): Promise<EntriesPage | null>
}

/** The part of a page of history that a sync looks at. */
export type EntriesPage = { data: HistoryEntry[]; pagination: { total_pages: number } }

/** The query of a page, as large as pages are. */
export const historyQuery = (page: number): string => `?page=${page}&limit=100`
