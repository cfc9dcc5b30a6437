import { Elysia } from 'elysia'
import type { Clock } from '../clock.ts'
import { describeOperation } from '../http/describe.ts'
import type { RouteWrapper } from '../http/middleware.ts'
import { describePage, invalidQuery, replyJsonPage, searchOf } from '../http/paging.ts'
import type { PromptFinder } from '../prompts/find.ts'
import { PromptPath } from '../prompts/schema.ts'
import { signalJson } from './list.ts'
import type { SignalReader } from './read.ts'
import { parseSignalQuery, parseStatsQuery } from './read_query.ts'
import { SignalList, SignalQuery, SignalStats, StatsQuery, UsageReport } from './schema_reads.ts'

type Services = { clock: Clock; findPrompt: PromptFinder['find']; signalReader: SignalReader }
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
  query: SignalQuery,
})

const counting = describeOperation({
  id: 'getSignalStats',
  tag: 'Signals',
  summary: 'Count signals over time',
  description:
    'How many signals of each value a prompt has got in each hour, day, week or month of a time zone, up to 1,000 points. ' +
    'A signal that was answered with 201 is in the next answer.',
  path: PromptPath,
  query: StatsQuery,
  success: { status: 200, description: 'The counts.', schema: SignalStats },
  invalid: invalidQuery(
    'interval',
    'must be hour, day, week or month, and given once',
    'The query is not valid, or has more than 1,000 points.',
  ),
})

const usage = describeOperation({
  id: 'getUsage',
  tag: 'Usage',
  summary: "Read the month's usage",
  description: "What the organisation has used of the current month's signals, by day and by prompt.",
  success: { status: 200, description: 'The usage of the current month.', schema: UsageReport },
})

export const signalReadRoutes = ({ clock, findPrompt, signalReader }: Services, { authenticated }: RouteWrapper) =>
  new Elysia({ name: 'signal-reads' })
    .get(
      '/api/v1/prompts/:prompt_id/signals',
      authenticated('signals:read', async (exchange, { prompt_id }: PromptParams, { organisationId }) => {
        const prompt = await findPrompt(organisationId, prompt_id)
        const query = parseSignalQuery(searchOf(exchange.request))
        const { data, limit, nextCursor } = await signalReader.list(prompt, query)
        const json = `[${data.map(signalJson).join()}]`
        return replyJsonPage(exchange, `/api/v1/prompts/${prompt_id}/signals`, json, limit, nextCursor)
      }),
      { detail: listing },
    )
    .get(
      '/api/v1/prompts/:prompt_id/stats',
      authenticated('signals:read', async (exchange, { prompt_id }: PromptParams, { organisationId }) => {
        const prompt = await findPrompt(organisationId, prompt_id)
        const query = parseStatsQuery(searchOf(exchange.request), clock.now())
        return exchange.reply(200, JSON.stringify(await signalReader.stats(prompt, query)))
      }),
      { detail: counting },
    )
    .get(
      '/api/v1/usage',
      authenticated('usage:read', async (exchange, _: object, { organisationId }) =>
        exchange.replyData(await signalReader.usage(organisationId)),
      ),
      { detail: usage },
    )
