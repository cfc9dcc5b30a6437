import { Elysia } from 'elysia'
import type { Metrics } from './metrics.ts'
import type { Readiness } from './readiness.ts'

/** For whoever runs the service: alive at all, and able to serve. */
export const healthRoutes = ({ readiness }: { readiness: Readiness }) =>
  new Elysia({ name: 'health', detail: { hide: true } })
    .get('/livez', () => ({ status: 'alive' }))
    .get('/readyz', async ({ set }) => {
      const report = await readiness.check()
      if (!report.ready) set.status = 503
      return report
    })

/** For Prometheus. */
export const metricsRoutes = ({ metrics }: { metrics: Metrics }) =>
  new Elysia({ name: 'metrics', detail: { hide: true } }).get('/metrics', async ({ set }) => {
    set.headers['content-type'] = metrics.contentType
    return metrics.text()
  })
