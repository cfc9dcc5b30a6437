import { Elysia } from 'elysia'
import type { Readiness } from './readiness.ts'

type Services = { readiness: Readiness }

/** For whoever runs the service: alive at all, and able to serve. */
export const healthRoutes = ({ readiness }: Services) =>
  new Elysia({ name: 'health', detail: { hide: true } })
    .get('/livez', () => ({ status: 'alive' }))
    .get('/readyz', async ({ set }) => {
      const report = await readiness()
      if (!report.ready) set.status = 503
      return report
    })
