import { Elysia } from 'elysia'
import type { Services } from './deps.ts'
import { notFound } from './errors.ts'
import { githubRoutes } from './github/routes.ts'
import { historyRoutes } from './history/routes.ts'
import { createAnswering } from './http/answer.ts'
import { docsRoutes } from './http/docs.ts'
import { healthRoutes, metricsRoutes } from './ops/routes.ts'
import { signalRoutes } from './signals/routes.ts'

/** Every route of the service, in one place. */
export function createApp(services: Services, { servesMetrics = true } = {}) {
  const answer = createAnswering(services)
  const documented = new Elysia().use(historyRoutes(services, answer)).use(signalRoutes(services, answer))
  return (
    new Elysia({ handler: { standardHostname: false } })
      .use(documented)
      .use(docsRoutes(answer, documented))
      .use(healthRoutes(services, answer))
      .use(servesMetrics ? metricsRoutes(services, answer) : new Elysia())
      .use(githubRoutes(services, answer))
      // Below /api/v1 even an unknown route is told only to those with a key.
      .all('/api/v1', answer.keyed(refuse, 'other'))
      .all('/api/v1/*', answer.keyed(refuse, 'other'))
      .all('/*', answer.open(refuse, 'other'))
  )
}

/** The metrics alone, for an address of their own. */
export function createMetricsApp(services: Services) {
  const answer = createAnswering(services)
  return new Elysia().use(metricsRoutes(services, answer)).all('/*', answer.open(refuse, 'other'))
}

async function refuse(): Promise<never> {
  throw notFound()
}
