import { Elysia } from 'elysia'
import type { Sql } from '../db/client.ts'
import type { Services } from '../deps.ts'
import { EntryPath } from '../history/schema.ts'
import { writeEntryFilters } from '../history/schema_params.ts'
import { describeOperations } from '../http/describe.ts'
import type { RouteWrapper } from '../http/middleware.ts'
import { describePage, replyPage } from '../http/paging.ts'
import { linkPages, writeNumberedPage } from '../lib/numbered_page.ts'
import { requireId } from '../lib/params.ts'
import { type OwnedPrompt, showPrompt } from '../prompts/find.ts'
import { PromptPath } from '../prompts/schema.ts'
import { createOverview } from './overview.ts'
import { readImpactPage, readUpToDate } from './read.ts'
import { readCompare } from './read_compare.ts'
import { readChangeDays } from './read_days.ts'
import { ImpactPage, type ImpactQuery, impactParams } from './schema.ts'
import { ChangeDaysAnswer, compareParams, daysParams, SideBySideAnswer } from './schema_compare.ts'
import { maxSortedPrompts, overviewParams, PromptImpactList } from './schema_overview.ts'

const operations = describeOperations('Impact', {
  getPromptImpact: {
    summary: 'Show the signals before and after each change of a prompt',
    description:
      'Lists the changes that went live (deployed, pr_merged), newest first: the signals of each, its rate, and the ' +
      'difference to the change before it. A signal belongs to the change that its metadata.commit_sha names, in full or ' +
      'by a unique prefix of at least 7 characters, else to the change that was live at its time. Filters select the ' +
      'changes to list; each is still compared with the change before it. With base and head, lists only these two, head ' +
      'first, and compares head with base.',
    path: PromptPath,
    query: impactParams,
    success: { status: 200, description: 'One page of changes.', schema: ImpactPage, headers: ['Link'] },
  },
  getChangeDays: {
    summary: 'Show how the difference of a change moved, day by day',
    description:
      'Compares a change with the one before it after each of its days, as the data is today, and shows what to look at ' +
      'before believing the difference.',
    path: EntryPath,
    query: daysParams,
    success: { status: 200, description: 'The days of the change.', schema: ChangeDaysAnswer },
  },
  comparePrompt: {
    summary: 'Compare two versions of a prompt that ran side by side',
    description:
      'Compares the signals that name two commits in metadata.commit_sha, day by day: only days with signals of both count, ' +
      'so what changes for both at the same time cancels out. The commits need not be in the history.',
    path: PromptPath,
    query: compareParams,
    success: { status: 200, description: 'The comparison.', schema: SideBySideAnswer },
  },
  listImpact: {
    summary: 'Show the live change and the last 30 days of every prompt',
    description:
      'Lists the prompts of the organisation with what their live changes did, newest prompt first unless sorted. Sorts at ' +
      `most ${maxSortedPrompts} prompts: with more, narrow the search.`,
    ...describePage('A page of prompts.', PromptImpactList),
    query: overviewParams,
  },
})

export function impactRoutes(services: Services, { authenticated }: RouteWrapper) {
  const { db, rollup, findPrompt, baseUrl } = services
  const readOverview = createOverview(services)
  const read = <T>(prompt: OwnedPrompt, work: (sql: Sql) => Promise<T>) => readUpToDate(db, rollup, prompt, work)
  return new Elysia({ name: 'impact' })
    .get(
      '/api/v1/prompts/:prompt_id/impact',
      authenticated('signals:read', async (context, { prompt_id: id }: PromptPath, { organisationId }) => {
        const prompt = await findPrompt(organisationId, id)
        const query = impactParams.parse(context.searchParams)
        const [shown, page] = await Promise.all([
          showPrompt(db, prompt),
          read(prompt, (sql) => readImpactPage(sql, prompt, query)),
        ])
        const { totalCount, data } = page
        const path = `${baseUrl}/api/v1/prompts/${id}/impact`
        const link = linkPages(query, totalCount, (page) => `${path}?${writeQuery(query, page)}`)
        return context.reply(200, writeNumberedPage(query, totalCount, data, { prompt: shown }), { link })
      }),
      { detail: operations.getPromptImpact },
    )
    .get(
      '/api/v1/prompts/:prompt_id/impact/:entry_id/days',
      authenticated(
        'signals:read',
        async (context, { prompt_id: id, entry_id }: PromptPath & { entry_id: string }, { organisationId }) => {
          const prompt = await findPrompt(organisationId, id)
          const { margin } = daysParams.parse(context.searchParams)
          const entryId = requireId(entry_id)
          return context.replyData(await read(prompt, (sql) => readChangeDays(sql, prompt, entryId, margin)))
        },
      ),
      { detail: operations.getChangeDays },
    )
    .get(
      '/api/v1/prompts/:prompt_id/compare',
      authenticated('signals:read', async (context, { prompt_id: id }: PromptPath, { organisationId }) => {
        const prompt = await findPrompt(organisationId, id)
        const query = compareParams.parse(context.searchParams)
        return context.replyData(await read(prompt, (sql) => readCompare(sql, prompt, query)))
      }),
      { detail: operations.comparePrompt },
    )
    .get(
      '/api/v1/impact',
      authenticated('signals:read', async (context, _: object, { organisationId }) => {
        const query = overviewParams.parse(context.searchParams)
        return replyPage(context, await readOverview(organisationId, query))
      }),
      { detail: operations.listImpact },
    )
}

/** The same query for another page. */
function writeQuery({ limit, margin, pair, ...filters }: ImpactQuery, page: number): URLSearchParams {
  const ids = pair && { base: String(pair.base), head: String(pair.head) }
  const given = { page: String(page), limit: String(limit), margin: String(margin) }
  return new URLSearchParams({ ...given, ...writeEntryFilters(filters), ...ids })
}
