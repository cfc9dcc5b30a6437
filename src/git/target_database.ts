import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { recordHistoryBatch } from '../history/batch.ts'
import { createHistoryReader } from '../history/read.ts'
import { parseHistoryQuery } from '../history/schema_params.ts'
import { requireOrganisation } from '../orgs/manage.ts'
import { createPromptFinder, listAllPrompts } from '../prompts/find.ts'
import { changePrompt, createPrompt } from '../prompts/manage.ts'
import { historyQuery, type SyncTarget } from './target.ts'

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
