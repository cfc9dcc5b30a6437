import { Elysia } from 'elysia'
import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { describeOperation } from '../http/describe.ts'
import type { RouteWrapper } from '../http/middleware.ts'
import type { SignalRollup } from '../stats/rollup.ts'
import { UsageReport } from './schema.ts'
import { readUsage } from './usage.ts'

type Services = { db: Db; clock: Clock; rollup: SignalRollup }

const usage = describeOperation({
  id: 'getUsage',
  tag: 'Usage',
  summary: "Read the month's usage",
  description: "Returns the organisation's signal usage in the current month, by day and by prompt.",
  success: { status: 200, description: 'The usage of the current month.', schema: UsageReport },
})

export const usageRoutes = ({ db, clock, rollup }: Services, { authenticated }: RouteWrapper) =>
  new Elysia({ name: 'usage' }).get(
    '/api/v1/usage',
    authenticated('usage:read', async (context, _: object, { organisationId }) =>
      context.replyData(await db.heavyRead(organisationId, () => readUsage(db, clock, rollup, organisationId))),
    ),
    { detail: usage },
  )
