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

/** Anybody may ask, and to render the text takes milliseconds. */
const keptMs = 1_000

export function metricsRoutes({ metrics }: { metrics: Metrics }, { publicRoute }: RouteWrapper) {
  let [text, keptUntil] = ['', 0]
  const answer = publicRoute(async (context) => {
    if (performance.now() >= keptUntil) {
      text = metrics.text()
      keptUntil = performance.now() + keptMs
    }
    return context.reply(200, text, { 'content-type': metrics.contentType })
  })
  return new Elysia({ name: 'metrics' }).get('/metrics', answer)
}
