import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { type RecordedHistory, recordHistoryBatch } from '../history/batch.ts'
import { createHistoryReader } from '../history/read.ts'
import type { HistoryBatch, HistoryEntry } from '../history/schema.ts'
import { parseHistoryQuery } from '../history/schema_params.ts'
import { dataOf, errorOf, type Rest } from '../lib/rest.ts'
import { requireOrganisation } from '../orgs/manage.ts'
import { createPromptFinder, listAllPrompts } from '../prompts/find.ts'
import { changePrompt, createPrompt } from '../prompts/manage.ts'

/** A file, and the public id of the prompt that is linked to it. */
export type LinkedFile = { id: string; path: string }

/** What a sync needs of the service: implemented over the database and over HTTP. */
export type SyncTarget = {
  listLinked(repository: string): Promise<LinkedFile[]>
  /** Returns the id of the new prompt. */
  createPrompt(name: string, repository: string, path: string): Promise<string>
  /** Links a prompt to another file. Returns the reason if the key may not do that, else null. */
  moveLink(id: string, repository: string, path: string): Promise<string | null>
  /** Records a batch, all or nothing. Returns what became of each entry, or would become in a dry run. */
  recordBatch(batch: HistoryBatch): Promise<RecordedHistory>
  /** Reads a page of a prompt's history, newest first. Returns null if the key may not read it. */
  readHistory(id: string, page: number): Promise<EntriesPage | null>
}

type EntriesPage = { data: HistoryEntry[]; pagination: { total_pages: number } }

/** The query of a page of the largest size. */
const historyQuery = (page: number): string => `?page=${page}&limit=100&include=title`

type PromptShown = { id: string; repository: string | null; path: string | null }

/** Every call is safe to repeat, because a file has one prompt. */
export function openHttpTarget({ call }: Rest): SyncTarget {
  return {
    async listLinked(repository) {
      const found: LinkedFile[] = []
      for (let cursor: string | null = ''; cursor !== null; ) {
        const query = new URLSearchParams({ limit: '100', archived: 'all', ...(cursor ? { cursor } : {}) })
        const answer = await call('GET', `/prompts?${query}`)
        for (const { id, path, ...prompt } of dataOf<PromptShown[]>(answer)) {
          if (path && prompt.repository === repository) found.push({ id, path })
        }
        cursor = answer.body.pagination?.next_cursor ?? null
      }
      return found.reverse()
    },
    async createPrompt(name, repository, path) {
      return dataOf<PromptShown>(await call('POST', '/prompts', { name, repository, path })).id
    },
    async moveLink(id, repository, path) {
      const answer = await call('PATCH', `/prompts/${id}`, { repository, path })
      if (answer.status === 403) return errorOf(answer).message
      dataOf(answer)
      return null
    },
    async recordBatch(batch) {
      return dataOf<RecordedHistory>(await call('POST', '/history/batch', batch))
    },
    async readHistory(id, page) {
      const answer = await call('GET', `/prompts/${id}/history${historyQuery(page)}`)
      if (answer.status === 403) return null
      dataOf(answer)
      return answer.body as EntriesPage
    },
  }
}

/** Opens the service's database, for an operator. */
export async function openDatabaseTarget(db: Db, clock: Clock, org: string): Promise<SyncTarget> {
  const { id: organisationId } = await requireOrganisation(db, org)
  const prompts = createPromptFinder(db)
  const history = createHistoryReader(db)
  const find = (id: string) => prompts.find(organisationId, id)
  return {
    async listLinked(repository) {
      const all = await listAllPrompts(db, org)
      return all.flatMap(({ id, path, ...prompt }) => (path && prompt.repository === repository ? { id, path } : []))
    },
    async createPrompt(name, repository, path) {
      const { id } = await createPrompt(db, clock, { org, name, id: null, file: { repository, path } })
      return id
    },
    async moveLink(id, repository, path) {
      await changePrompt(db, clock, await find(id), { file: { repository, path } })
      return null
    },
    recordBatch: (batch) => recordHistoryBatch(db, clock, organisationId, batch, find),
    async readHistory(id, page) {
      const found = await history.findHistory(organisationId, id)
      const { body } = await history.readPage(found, parseHistoryQuery(historyQuery(page)))
      return JSON.parse(body)
    },
  }
}
