import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { defineOperations, operation } from '../http/operation.ts'
import type { SignalRollup } from '../stats/rollup.ts'
import { UsageReport } from './schema.ts'
import { readUsage } from './usage.ts'

type Needs = { db: Db; clock: Clock; rollup: SignalRollup }

export const usageOperations = defineOperations('Usage', {
  getUsage: operation({
    method: 'GET',
    path: '/usage',
    scope: 'usage:read',
    summary: "Read the month's usage",
    description: "Returns the organisation's signal usage in the current month, by day and by prompt.",
    answer: { status: 200, description: 'The usage of the current month.', schema: UsageReport },
    tool: {
      name: 'get_usage',
      description: 'How many signals the organisation has recorded this month, and its limit.',
    },
    run: ({ db, clock, rollup }: Needs, { caller: { organisationId }, context: { deadline } }) =>
      db.heavyRead(organisationId, () => readUsage(db, clock, rollup, organisationId, deadline)),
  }),
})
