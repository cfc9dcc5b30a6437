import { Elysia } from 'elysia'
import type { Db } from '../db/client.ts'
import type { HeavyReads } from '../db/heavy_reads.ts'
import { describeOperation } from '../http/describe.ts'
import type { RouteWrapper } from '../http/middleware.ts'
import { describePage, replyJsonPage, searchOf } from '../http/paging.ts'
import type { PromptFinder } from '../prompts/find.ts'
import { PromptPath } from '../prompts/schema.ts'
import { isSearch, listSignals, signalJson } from './list.ts'
import { SignalList } from './schema_list.ts'
import { signalListParams } from './schema_params.ts'

type Services = { db: Db; findPrompt: PromptFinder['find']; heavyReads: HeavyReads }
type PromptParams = { prompt_id: string }

const listing = describeOperation({
  id: 'listSignals',
  tag: 'Signals',
  summary: 'List signals',
  description:
    'The signals of a prompt, newest first. With a filter on the value or the metadata, each request looks at up to 5,000 ' +
    'signals: a page may then have few signals or none, and still a next_cursor.',
  path: PromptPath,
  ...describePage('A page of signals.', SignalList),
  query: signalListParams,
})

export const signalListRoutes = ({ db, findPrompt, heavyReads }: Services, { authenticated }: RouteWrapper) =>
  new Elysia({ name: 'signal-list' }).get(
    '/api/v1/prompts/:prompt_id/signals',
    authenticated('signals:read', async (context, { prompt_id }: PromptParams, { organisationId }) => {
      const { id } = await findPrompt(organisationId, prompt_id)
      const query = signalListParams.parse(searchOf(context.request))
      const list = () => listSignals(db, id, query)
      const page = await (isSearch(query.filter) ? heavyReads(organisationId, list) : list())
      const json = `[${page.data.map(signalJson).join()}]`
      return replyJsonPage(context, `/api/v1/prompts/${prompt_id}/signals`, json, page.limit, page.nextCursor)
    }),
    { detail: listing },
  )
