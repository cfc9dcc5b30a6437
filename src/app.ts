import { type AnyElysia, Elysia } from 'elysia'
import { auditRoutes } from './audit/routes.ts'
import type { Services } from './deps.ts'
import { notFound } from './errors.ts'
import { githubRoutes, webhookRoutes } from './github/routes.ts'
import { historyRoutes } from './history/routes.ts'
import { createRouteWrapper, type RouteWrapper } from './http/answer.ts'
import { docsRoutes } from './http/docs.ts'
import { keyRoutes } from './keys/routes.ts'
import { healthRoutes, metricsRoutes } from './ops/routes.ts'
import { signalRoutes } from './signals/routes.ts'

/** Every route of the service, in one place. */
export function createApp(services: Services, { servesMetrics = true } = {}) {
  const wrapper = createRouteWrapper(services)
  const documented = new Elysia()
    .use(historyRoutes(services, wrapper))
    .use(signalRoutes(services, wrapper))
    .use(keyRoutes(services, wrapper))
    .use(webhookRoutes(services, wrapper))
    .use(auditRoutes(services, wrapper))
  const app = createRouter()
    .use(documented)
    .use(docsRoutes(wrapper, documented))
    .use(healthRoutes(services, wrapper))
    .use(servesMetrics ? metricsRoutes(services, wrapper) : new Elysia())
    .use(githubRoutes(services, wrapper))
  return refuseOthers(app, wrapper)
}

/**
 * Without `aot`, which compiles strings into code, and the binary runs none (scripts/compile.ts). The framework then knows
 * no `parse: 'none'`, so it is given one that leaves the body to the handlers.
 */
const createRouter = () =>
  new Elysia({ aot: false, handler: { standardHostname: false } }).parser('none', () => 'unread')

/** The metrics alone, for an address of their own. */
export function createMetricsApp(services: Services) {
  const wrapper = createRouteWrapper(services)
  return refuseOthers(createRouter().use(metricsRoutes(services, wrapper)), wrapper)
}

/**
 * Answers everything that no route answers with `not_found`, below /api/v1 only after the key was checked. On a path
 * that is known for other methods, the Allow header names these.
 */
function refuseOthers(app: AnyElysia, { authenticated, publicRoute }: RouteWrapper): AnyElysia {
  const methodsOf = new Map<string, string[]>([
    ['/api/v1', []],
    ['/api/v1/*', []],
    ['/*', []],
  ])
  for (const { method, path } of app.routes) {
    methodsOf.set(path, [...(methodsOf.get(path) ?? []), ...(method === 'GET' ? ['GET', 'HEAD'] : [method])])
  }
  const others = new Elysia()
  const hasApi = app.routes.some(({ path }) => path.startsWith('/api/v1'))
  for (const [path, methods] of methodsOf) {
    const headers: Record<string, string> = methods.length > 0 ? { allow: methods.join(', ') } : {}
    const refuse = async () => {
      throw notFound(headers)
    }
    const needsKey = hasApi && path.startsWith('/api/v1')
    others.all(path, needsKey ? authenticated(null, refuse, 'other') : publicRoute(refuse, 'other'), { parse: 'none' })
  }
  return app.use(others)
}
