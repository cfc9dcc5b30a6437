import { Elysia } from 'elysia'
import type { Services } from '../deps.ts'
import { describeOperations } from '../http/describe.ts'
import type { RouteWrapper } from '../http/middleware.ts'
import { UsageReport } from './schema.ts'
import { readUsage } from './usage.ts'

const operations = describeOperations('Usage', {
  getUsage: {
    summary: "Read the month's usage",
    description: "Returns the organisation's signal usage in the current month, by day and by prompt.",
    success: { status: 200, description: 'The usage of the current month.', schema: UsageReport },
  },
})

export const usageRoutes = ({ db, clock, rollup }: Services, { authenticated }: RouteWrapper) =>
  new Elysia({ name: 'usage' }).get(
    '/api/v1/usage',
    authenticated('usage:read', async (context, _: object, { organisationId }) =>
      context.replyData(await db.heavyRead(organisationId, () => readUsage(db, clock, rollup, organisationId))),
    ),
    { detail: operations.getUsage },
  )
