import { Elysia } from 'elysia'
import type { RouteWrapper } from '../http/middleware.ts'
import type { Metrics } from './metrics.ts'
import type { Readiness } from './readiness.ts'

export const healthRoutes = ({ readiness }: { readiness: Readiness }, { publicRoute }: RouteWrapper) =>
  new Elysia({ name: 'health' })
    .get(
      '/livez',
      publicRoute(async (context) => context.reply(200, '{"status":"alive"}')),
    )
    .get(
      '/readyz',
      publicRoute(async (context) => {
        const report = await readiness.check()
        return context.reply(report.ready ? 200 : 503, JSON.stringify(report))
      }),
    )

export const metricsRoutes = ({ metrics }: { metrics: Metrics }, { publicRoute }: RouteWrapper) =>
  new Elysia({ name: 'metrics' }).get(
    '/metrics',
    publicRoute(async (context) => context.reply(200, metrics.text(), { 'content-type': metrics.contentType })),
  )
