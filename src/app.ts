import { Elysia } from 'elysia'
import type { Services } from './deps.ts'
import { notFound } from './errors.ts'
import { githubRoutes } from './github/routes.ts'
import { historyRoutes } from './history/routes.ts'
import { authenticated } from './http/auth.ts'
import { docs } from './http/docs.ts'
import { envelope } from './http/envelope.ts'
import { type Handler, observed } from './http/observe.ts'
import { healthRoutes, metricsRoutes } from './ops/routes.ts'
import { signalRoutes } from './signals/routes.ts'

type Options = { servesMetrics?: boolean }

/** The whole service: its routes, with every request in the log and the metrics. */
export const createHandler = (services: Services, options: Options = {}): Handler =>
  observed(createApp(services, options).fetch, services)

/** For an address of their own. */
export const createMetricsHandler = (services: Services): Handler =>
  observed(new Elysia().use(envelope(services.log)).use(metricsRoutes(services)).fetch, services)

/** Every route of the service, in one place. */
export const createApp = (services: Services, { servesMetrics = true }: Options = {}) =>
  new Elysia({ handler: { standardHostname: false } })
    .use(envelope(services.log))
    .use(docs())
    .use(healthRoutes(services))
    .use(servesMetrics ? metricsRoutes(services) : new Elysia())
    .use(historyRoutes(services))
    .use(signalRoutes(services))
    .use(githubRoutes(services))
    .use(unknownApiRoutes(services))

/** Below /api/v1 even an unknown route is told only to those with a key. */
const unknownApiRoutes = ({ verifyKey }: Services) => {
  const refuse = () => {
    throw notFound()
  }
  return new Elysia({ name: 'unknown-api-routes' })
    .use(authenticated(verifyKey))
    .all('/api/v1', refuse)
    .all('/api/v1/*', refuse)
}
