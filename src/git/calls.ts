// The operations that a sync calls. Each is safe to repeat, because a file has one prompt.
import type { RecordedHistory } from '../history/batch.ts'
import type { HistoryEntry } from '../history/schema.ts'
import type { HistoryBatch } from '../history/schema_batch.ts'
import { type Call, dataOf, errorOf, readRows } from '../lib/rest.ts'
import type { PromptFile } from '../prompts/find.ts'

/** A file, and the prompt that is linked to it. */
export type LinkedFile = { id: string; path: string; liveBranch: string | null }

type PromptShown = { id: string; repository: string | null; path: string | null; live_branch: string | null }

type NewPrompt = { name: string; repository: string; path: string; live_branch?: string }

export type EntriesPage = { data: HistoryEntry[]; pagination: { total_pages: number } }

export async function listLinked(call: Call, repository: string): Promise<LinkedFile[]> {
  const found: LinkedFile[] = []
  for await (const { id, path, ...prompt } of readRows<PromptShown>(call, '/prompts', { archived: 'all' })) {
    if (path && prompt.repository === repository) found.push({ id, path, liveBranch: prompt.live_branch })
  }
  return found.reverse()
}

/** Lists those with the most prompts first. */
export async function listRepositories(call: Call): Promise<{ repository: string; prompts: number }[]> {
  return dataOf(await call('GET', '/repositories'))
}

/** Returns the paths of files whose prompts were erased. */
export async function listErased(call: Call, repository: string): Promise<string[]> {
  const files = await Array.fromAsync(readRows<PromptFile>(call, '/erased-files'))
  return files.flatMap((file) => (file.repository === repository ? file.path : []))
}

export async function createPrompt(call: Call, prompt: NewPrompt): Promise<string> {
  return dataOf<PromptShown>(await call('POST', '/prompts', prompt)).id
}

/** Changes the link or the live branch of a prompt. Returns the reason if the key may not do that, else null. */
export async function changePrompt(call: Call, id: string, change: Partial<NewPrompt>): Promise<string | null> {
  const answer = await call('PATCH', `/prompts/${id}`, change)
  if (answer.status === 403) return errorOf(answer).message
  dataOf(answer)
  return null
}

/** Records a batch, all or nothing. Returns what became of each entry, or would become in a dry run. */
export async function recordBatch(call: Call, batch: HistoryBatch): Promise<RecordedHistory> {
  return dataOf(await call('POST', '/history/batch', batch))
}

/** Reads a page of a prompt's history, newest first. Returns null if the key may not read it. */
export async function readHistory(call: Call, id: string, page: number): Promise<EntriesPage | null> {
  const answer = await call('GET', `/prompts/${id}/history?page=${page}&limit=100&include=title`)
  if (answer.status === 403) return null
  dataOf(answer)
  return answer.body as EntriesPage
}
