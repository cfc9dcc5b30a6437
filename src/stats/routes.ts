import { Elysia } from 'elysia'
import type { Services } from '../deps.ts'
import { describeOperations } from '../http/describe.ts'
import type { RouteWrapper } from '../http/middleware.ts'
import { PromptPath } from '../prompts/schema.ts'
import { parseStatsQuery, readStats } from './read.ts'
import { SignalStats, statsParams } from './schema.ts'

const operations = describeOperations('Signals', {
  getSignalStats: {
    summary: 'Count signals over time',
    description:
      'Counts the signals of a prompt in each hour, day, week or month of a time zone, up to 1,000 points. A signal that was ' +
      'answered with 201 is included in every later response.',
    path: PromptPath,
    query: statsParams,
    success: { status: 200, description: 'The counts.', schema: SignalStats },
  },
})

export const statsRoutes = ({ db, clock, rollup, findPrompt }: Services, { authenticated }: RouteWrapper) =>
  new Elysia({ name: 'stats' }).get(
    '/api/v1/prompts/:prompt_id/stats',
    authenticated('signals:read', async (context, { prompt_id }: PromptPath, { organisationId }) => {
      const prompt = await findPrompt(organisationId, prompt_id)
      const query = parseStatsQuery(context.searchParams, clock.now())
      const stats = await db.heavyRead(organisationId, () => readStats(db, rollup, prompt, query))
      return context.reply(200, JSON.stringify(stats))
    }),
    { detail: operations.getSignalStats },
  )
