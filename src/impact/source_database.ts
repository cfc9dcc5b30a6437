import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { requireOrganisation } from '../orgs/manage.ts'
import { requirePrompt, showPrompt } from '../prompts/find.ts'
import { createSignalRollup } from '../stats/rollup.ts'
import { readOverview } from './overview.ts'
import { readImpact, readSnapshot } from './read.ts'
import { readCompare } from './read_compare.ts'
import { compareParams, impactParams, overviewParams } from './schema_params.ts'
import { createPromptOrders } from './sort.ts'
import type { ImpactSource } from './source.ts'

/** Opens the service's database, for an operator. Only a list of prompts needs the organisation. */
export function openDatabaseSource(db: Db, clock: Clock, org: string | null): ImpactSource {
  const rollup = createSignalRollup(db, { patienceMs: Number.POSITIVE_INFINITY })
  return {
    async readImpact(id, query) {
      const prompt = await requirePrompt(db.sql, id)
      const read = (sql: Sql) => readImpact(sql, prompt, impactParams.parse(query))
      return { prompt: await showPrompt(db, prompt), ...(await readSnapshot(db, rollup, prompt, read)) }
    },
    async readCompare(id, query) {
      const prompt = await requirePrompt(db.sql, id)
      return readSnapshot(db, rollup, prompt, (sql) => readCompare(sql, prompt, compareParams.parse(query)))
    },
    async listPrompts(query) {
      const { id: organisationId } = await requireOrganisation(db, org ?? '')
      const services = { db, clock, rollup }
      const orders = createPromptOrders(services)
      return readOverview({ ...services, orders }, organisationId, overviewParams.parse(query))
    },
  }
}
