import { Elysia } from 'elysia'
import type { Db } from '../db/client.ts'
import { writeEntryFilters } from '../history/schema_params.ts'
import { describeOperations } from '../http/describe.ts'
import type { RouteWrapper } from '../http/middleware.ts'
import { describePage, replyPage, searchOf } from '../http/paging.ts'
import { linkPages, writeNumberedPage } from '../lib/numbered_page.ts'
import type { PromptFinder } from '../prompts/find.ts'
import { showPrompt } from '../prompts/manage.ts'
import { PromptPath } from '../prompts/schema.ts'
import type { ImpactReader } from './read.ts'
import { ImpactPage, maxSortedPrompts, PromptImpactList } from './schema.ts'
import { type ImpactQuery, impactParams, overviewParams } from './schema_params.ts'

type Services = { db: Db; findPrompt: PromptFinder['find']; loadImpact(): Promise<ImpactReader>; baseUrl: string }
type PromptParams = { prompt_id: string }

const operations = describeOperations('Impact', {
  getPromptImpact: {
    summary: 'See what each change of a prompt did',
    description:
      'Lists the changes that went live (deployed, pr_merged), newest first, a page at a time: the signals that belong to ' +
      'each, its rate, and the difference to the change before it. A signal belongs to the change that its ' +
      'metadata.commit_sha names, whole or by at least 7 characters that begin no other, else to the one that was live at ' +
      'its time. Filters choose the changes that are listed, and each is still compared with the one before it. With base ' +
      'and head, only these two are listed, the head first, and it is compared with the base.',
    path: PromptPath,
    query: impactParams,
    success: { status: 200, description: 'One page of changes.', schema: ImpactPage, headers: ['Link'] },
  },
  listImpact: {
    summary: 'See the live change and the last 30 days of every prompt',
    description:
      'Lists the prompts of the organisation, newest first unless sort says otherwise, each with what its live change did. ' +
      `At most ${maxSortedPrompts} prompts are sorted: of more, search for fewer.`,
    ...describePage('A page of prompts.', PromptImpactList),
    query: overviewParams,
  },
})

export const impactRoutes = ({ db, findPrompt, loadImpact, baseUrl }: Services, { authenticated }: RouteWrapper) =>
  new Elysia({ name: 'impact' })
    .get(
      '/api/v1/prompts/:prompt_id/impact',
      authenticated('signals:read', async (context, { prompt_id: id }: PromptParams, { organisationId }) => {
        const prompt = await findPrompt(organisationId, id)
        const query = impactParams.parse(searchOf(context.request))
        const impact = await loadImpact()
        const [shown, { totalCount, data }] = await Promise.all([showPrompt(db, prompt), impact.read(prompt, query)])
        const path = `${baseUrl}/api/v1/prompts/${id}/impact`
        const link = linkPages(query, totalCount, (page) => `${path}?${writeQuery(query, page)}`)
        return context.reply(200, writeNumberedPage(query, totalCount, data, { prompt: shown }), { link })
      }),
      { detail: operations.getPromptImpact },
    )
    .get(
      '/api/v1/impact',
      authenticated('signals:read', async (context, _: object, { organisationId }) => {
        const query = overviewParams.parse(searchOf(context.request))
        const impact = await loadImpact()
        return replyPage(context, await impact.summarise(organisationId, query))
      }),
      { detail: operations.listImpact },
    )

/** The same query for another page. */
function writeQuery({ limit, margin, pair, ...filters }: ImpactQuery, page: number): URLSearchParams {
  const given = { page: String(page), limit: String(limit), margin: String(margin), ...writeEntryFilters(filters) }
  const query = new URLSearchParams(given)
  for (const [name, id] of Object.entries(pair ?? {})) query.set(name, String(id))
  return query
}
