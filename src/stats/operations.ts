import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { defineOperations, operation } from '../http/operation.ts'
import { PromptPath } from '../prompts/schema.ts'
import { readStats, resolveStatsQuery } from './read.ts'
import type { SignalRollup } from './rollup.ts'
import { SignalStats, statsParams } from './schema.ts'

type Needs = { db: Db; clock: Clock; rollup: SignalRollup }

export const statsOperations = defineOperations('Signals', {
  getSignalStats: operation({
    method: 'GET',
    path: '/prompts/:prompt_id/stats',
    scope: 'signals:read',
    summary: 'Count signals over time',
    description:
      'Counts the signals of a prompt in each hour, day, week or month of a time zone, up to 1,000 points. A signal that was ' +
      'answered with 201 is included in every later response.',
    params: PromptPath,
    query: statsParams,
    answer: { status: 200, description: 'The counts.', schema: SignalStats, shape: 'body' },
    tool: {
      name: 'get_stats',
      description: 'Counts signals over time.',
      takes: ['interval', 'since', 'until', 'by'],
    },
    run: ({ db, clock, rollup }: Needs, { prompt, query, caller }) =>
      db.heavyRead(caller.organisationId, () => readStats(db, rollup, prompt, resolveStatsQuery(query, clock.now()))),
  }),
})
