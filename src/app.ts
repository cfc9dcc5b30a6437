import { type AnyElysia, Elysia } from 'elysia'
import type { Services } from './deps.ts'
import { notFound } from './errors.ts'
import { githubEventRoutes } from './github/routes.ts'
import { consoleOffRoutes, consoleRoutes, feedbackRoutes } from './http/console.ts'
import { describeOperation } from './http/describe.ts'
import { docsRoutes } from './http/docs.ts'
import { guideRoutes } from './http/guides.ts'
import { createRouteWrapper, type RouteWrapper } from './http/middleware.ts'
import { answerPreflight, type RequestContext } from './http/request_context.ts'
import { mcpRoutes } from './mcp/routes.ts'
import { operations } from './operations.ts'
import { healthRoutes, metricsRoutes } from './ops/routes.ts'
import type { App } from './platform.ts'

export function createApp(
  services: Services,
  { servesMetrics = true, servesConsole = true, servesButton = true } = {},
): App {
  const wrapper = createRouteWrapper(services)
  const documented = operationRoutes(services, wrapper)
  const console = servesConsole ? consoleRoutes(wrapper) : undefined
  const others = [
    docsRoutes(wrapper, documented, servesConsole),
    guideRoutes(wrapper),
    console ?? consoleOffRoutes(wrapper),
    ...(servesButton ? [feedbackRoutes(wrapper)] : []),
    healthRoutes(services, wrapper),
    ...(servesMetrics ? [metricsRoutes(services, wrapper)] : []),
    githubEventRoutes(services, wrapper),
    mcpRoutes(services, wrapper, operations, documented),
  ]
  return toApp([documented, ...others], wrapper, ['/api/v1', '/api/v1/*', '/*'], console?.showMissing)
}

function operationRoutes(services: Services, { authenticated, publicRoute }: RouteWrapper): AnyElysia {
  const routes = new Elysia({ name: 'operations' }).options(
    '/api/v1/prompts/:prompt_id/signals',
    publicRoute(answerPreflight),
    { detail: { hide: true } },
  )
  for (const operation of operations) {
    const { method, path, scope, scopeFor, handle } = operation
    const route = authenticated<Record<string, string>>(
      scope,
      (context, params, caller) => handle(services, context, params, caller),
      undefined,
      scopeFor,
    )
    routes.route(method, `/api/v1${path}`, route, { detail: describeOperation(operation) })
  }
  return routes
}

export function createMetricsApp(services: Services): App {
  const wrapper = createRouteWrapper(services)
  return toApp([metricsRoutes(services, wrapper)], wrapper, ['/*'])
}

/** A page for people instead of `not_found`; undefined for any other client. */
type ShowMissing = (context: RequestContext) => Promise<Response | undefined>

/** Creates the slow router of the framework only for a request that nativeRoutes (platform/bun.ts) does not match. */
function toApp(features: AnyElysia[], wrapper: RouteWrapper, paths: string[], showMissing?: ShowMissing): App {
  let router: AnyElysia | undefined
  return {
    routes: features.flatMap(({ routes }) => routes),
    fetch(request) {
      router ??= createRouter(features, wrapper, paths, showMissing)
      return router.fetch(request)
    },
  }
}

/** Everything else is `not_found`, below /api/v1 only after the key was checked. Allow lists the other methods. */
function createRouter(
  features: AnyElysia[],
  { authenticated, publicRoute }: RouteWrapper,
  paths: string[],
  showMissing?: ShowMissing,
): AnyElysia {
  // Without `aot`, which compiles strings into code: the binary runs none (scripts/compile.ts). Handlers read the body
  // themselves, after they have checked the key.
  const router = new Elysia({ aot: false, handler: { standardHostname: false } }).onParse(() => 'unread')
  for (const feature of features) router.use(feature)
  const methodsOf = new Map<string, string[]>(paths.map((path) => [path, []]))
  for (const { method, path } of router.routes) {
    methodsOf.set(path, [...(methodsOf.get(path) ?? []), ...(method === 'GET' ? ['GET', 'HEAD'] : [method])])
  }
  const allowOf = (path: string): Record<string, string> => {
    const methods = methodsOf.get(path) ?? []
    return methods.length > 0 ? { allow: methods.join(', ') } : {}
  }
  for (const path of methodsOf.keys()) {
    // The framework routes the root as `/*`. The URL is not parsed, because the host may be malformed.
    const fail = async (context: RequestContext) => {
      const { request } = context
      const page = path === '/*' ? await showMissing?.(context) : undefined
      if (page) return page
      throw notFound(allowOf(/^\w+:\/\/[^/]*\/(\?|$)/.test(request.url) ? '/' : path))
    }
    const route = path.startsWith('/api/v1') ? authenticated(null, fail, 'other') : publicRoute(fail, 'other')
    router.all(path, route)
  }
  return router
}
