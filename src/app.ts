import { Elysia } from 'elysia'
import type { Services } from './deps.ts'
import { notFound } from './errors.ts'
import { githubRoutes } from './github/routes.ts'
import { historyRoutes } from './history/routes.ts'
import { authenticated } from './http/auth.ts'
import { docs } from './http/docs.ts'
import { envelope } from './http/envelope.ts'
import { healthRoutes } from './ops/routes.ts'
import { signalRoutes } from './signals/routes.ts'

/** Every route of the service, in one place. */
export const createApp = (services: Services) =>
  new Elysia({ handler: { standardHostname: false } })
    .use(envelope(services.log))
    .use(docs())
    .use(healthRoutes(services))
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
