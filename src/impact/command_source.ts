import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { ServiceError } from '../errors.ts'
import { dataOf, type Rest } from '../lib/rest.ts'
import { requireOrganisation } from '../orgs/manage.ts'
import { requirePrompt, showPrompt } from '../prompts/find.ts'
import { createSignalRollup } from '../stats/rollup.ts'
import { createOverview } from './overview.ts'
import { readImpactPage, readUpToDate } from './read.ts'
import { readCompare } from './read_compare.ts'
import { type Impact, impactParams } from './schema.ts'
import { compareParams, type SideBySide } from './schema_compare.ts'
import { overviewParams } from './schema_overview.ts'

export type PromptName = { id: string; name: string }

/** Where commands read impacts from: the database, or a service over HTTP. Queries are those of the interface. */
export type ImpactSource = {
  readImpact(
    prompt: string,
    query: URLSearchParams,
  ): Promise<{ prompt: PromptName; totalCount: number; data: Impact[] }>
  readCompare(prompt: string, query: URLSearchParams): Promise<SideBySide>
  /** A page of prompts and their live changes. */
  listPrompts(
    query: URLSearchParams,
  ): Promise<{ data: { prompt: PromptName; latest: Impact | null }[]; nextCursor: string | null }>
}

type ImpactBody = { prompt: PromptName; pagination: { total_count: number } }

export function openHttpSource({ call }: Rest): ImpactSource {
  const pathOf = (prompt: string) => `/prompts/${encodeURIComponent(prompt)}`
  return {
    async readImpact(prompt, query) {
      const answer = await call('GET', `${pathOf(prompt)}/impact?${query}`)
      const data = dataOf<Impact[]>(answer)
      const { prompt: shown, pagination } = answer.body as ImpactBody
      return { prompt: shown, totalCount: pagination.total_count, data }
    },
    readCompare: async (prompt, query) => dataOf(await call('GET', `${pathOf(prompt)}/compare?${query}`)),
    async listPrompts(query) {
      const answer = await call('GET', `/impact?${query}`)
      return { data: dataOf(answer), nextCursor: answer.body.pagination?.next_cursor ?? null }
    },
  }
}

/** Reads from the database, for an operator. Only `listPrompts` needs the organisation; without it, prompts are of any. */
export function openDatabaseSource(db: Db, clock: Clock, org: string | null): ImpactSource {
  const rollup = createSignalRollup(db, { patienceMs: Number.POSITIVE_INFINITY })
  return {
    async readImpact(id, query) {
      const prompt = await requirePrompt(db.sql, id)
      if (prompt.org !== (org ?? prompt.org)) throw new ServiceError('not_found', `There is no prompt ${id} in ${org}.`)
      const read = (sql: Sql) => readImpactPage(sql, prompt, impactParams.parse(query))
      return { prompt: await showPrompt(db, prompt), ...(await readUpToDate(db, rollup, prompt, read)) }
    },
    async readCompare(id, query) {
      const prompt = await requirePrompt(db.sql, id)
      return readUpToDate(db, rollup, prompt, (sql) => readCompare(sql, prompt, compareParams.parse(query)))
    },
    async listPrompts(query) {
      const { id: organisationId } = await requireOrganisation(db, org ?? '')
      return createOverview({ db, clock, rollup })(organisationId, overviewParams.parse(query))
    },
  }
}
