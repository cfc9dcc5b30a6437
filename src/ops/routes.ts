import { Elysia } from 'elysia'
import type { RouteWrapper } from '../http/middleware.ts'
import type { Metrics } from './metrics.ts'
import type { Readiness } from './readiness.ts'

/** Liveness and readiness, for load balancers and supervisors. */
export const healthRoutes = ({ readiness }: { readiness: Readiness }, { publicRoute }: RouteWrapper) =>
  new Elysia({ name: 'health' })
    .get(
      '/livez',
      publicRoute(async (exchange) => exchange.reply(200, '{"status":"alive"}')),
    )
    .get(
      '/readyz',
      publicRoute(async (exchange) => {
        const report = await readiness.check()
        return exchange.reply(report.ready ? 200 : 503, JSON.stringify(report))
      }),
    )

/** Metrics in the text format of Prometheus. */
export const metricsRoutes = ({ metrics }: { metrics: Metrics }, { publicRoute }: RouteWrapper) =>
  new Elysia({ name: 'metrics' }).get(
    '/metrics',
    publicRoute(async (exchange) => exchange.reply(200, await metrics.text(), { 'content-type': metrics.contentType })),
  )
