import type { RecordedHistory } from '../history/batch.ts'
import type { HistoryBatch, HistoryEntry } from '../history/schema.ts'

/** A file, and the prompt that is linked to it. */
export type LinkedFile = { id: string; path: string; liveBranch: string | null }

type NewPrompt = { name: string; repository: string; path: string; live_branch?: string }

/** What a sync needs of the service: src/cli implements it. */
export type SyncTarget = {
  listLinked(repository: string): Promise<LinkedFile[]>
  /** Those with the most prompts first. */
  listRepositories(): Promise<{ repository: string; prompts: number }[]>
  /** Returns the paths of files whose prompts were erased. */
  listErased(repository: string): Promise<string[]>
  /** Returns the id of the new prompt. */
  createPrompt(prompt: NewPrompt): Promise<string>
  /** Changes the link or the live branch of a prompt. Returns the reason if the key may not do that, else null. */
  changePrompt(id: string, change: Partial<NewPrompt>): Promise<string | null>
  /** Records a batch, all or nothing. Returns what became of each entry, or would become in a dry run. */
  recordBatch(batch: HistoryBatch): Promise<RecordedHistory>
  /** Reads a page of a prompt's history, newest first. Returns null if the key may not read it. */
  readHistory(id: string, page: number): Promise<EntriesPage | null>
}

export type EntriesPage = { data: HistoryEntry[]; pagination: { total_pages: number } }
