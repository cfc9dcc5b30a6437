import type { Clock } from '../clock.ts'
import { forbidden, ServiceError, unavailable } from '../errors.ts'
import { settle, track } from '../lib/deadline.ts'
import { deferToImmediate } from '../lib/turns.ts'
import type { Log } from '../log.ts'
import type { Receiver } from '../platform.ts'
import type { Caller, KeyVerifier, Scope } from './caller.ts'
import type { AddressFinder } from './client_address.ts'
import { corsHeaders } from './cors.ts'
import type { Drain } from './drain.ts'
import {
  type RateLimit,
  type RateLimitObserver,
  type RateLimits,
  type RateUsage,
  tooManyRequests,
} from './rate_limit.ts'
import { RequestContext } from './request_context.ts'

/** What the runtime's router, or the framework, passes to a route. */
type Context<Params> = { request: Request; params: Params; route: string; receiver?: Receiver }
type Route<Params> = ((context: Context<Params>) => Promise<Response>) & { scope?: Scope | null }

export type Handler<Params> = (context: RequestContext, params: Params) => Promise<Response>
type AuthenticatedHandler<Params> = (context: RequestContext, params: Params, caller: Caller) => Promise<Response>

/** Wraps handlers into routes. In the log and the metrics a route is its template, unless it is given a name. */
export type RouteWrapper = {
  publicRoute<Params>(handle: Handler<Params>, name?: string): Route<Params>
  /**
   * For callers with an API key that has the scope, which is checked before anything else of the request. With null any
   * key will do: that is for what concerns the key itself, and for routes that do not exist.
   */
  authenticated<Params>(scope: Scope | null, handle: AuthenticatedHandler<Params>, name?: string): Route<Params>
}

export type RequestObserver = {
  began(): void
  ended(method: string, route: string, status: number, seconds: number): void
}

type Services = {
  log: Log
  clock: Clock
  metrics: { requests: RequestObserver; rates: RateLimitObserver }
  drain: Drain
  verifyKey: KeyVerifier
  findAddress: AddressFinder
  rateLimits: RateLimits
  baseUrl: string
}

/** Routes that monitoring asks every few seconds; their lines would drown all others. */
const quietRoutes = new Set(['/livez', '/readyz', '/metrics'])

/**
 * The middleware around every handler: the request id, the API key, the deadline, an error in the envelope whatever is
 * thrown, the log line and the metrics. The framework's hooks would do the same at 103 instead of 75 µs of processor time
 * for a signal.
 */
export function createRouteWrapper(services: Services): RouteWrapper {
  const { log, clock, metrics, drain, verifyKey, findAddress, baseUrl } = services
  const { perKey, perAddress } = services.rateLimits

  function end(context: RequestContext, response: Response): void {
    const { request, route, caller, requestId, traceId, beganAt } = context
    const { method } = request
    const { status } = response
    const endedAt = performance.now()
    const ms = endedAt - beganAt
    drain.answered(endedAt)
    if (drain.isDraining) response.headers.set('connection', 'close')
    metrics.requests.ended(method, route, status, ms / 1_000)
    const level = quietRoutes.has(route) ? 'debug' : status >= 500 ? 'error' : 'info'
    const { org, key } = caller ?? {}
    log.request({ level, time: clock.now(), method, route, status, ms, org, key, requestId, traceId })
    context.onAnswered?.()
    // While Bun drops the rest of a body it runs what waits for its turn. Of a few thousand answers given together, each
    // would be sent within the one before, until the stack is full and the others are never sent.
    if (context.isBodyRead || method === 'GET') context.send(response)
    else setImmediate(context.send, response)
  }

  function fail(context: RequestContext, error: unknown): void {
    const shown = error instanceof ServiceError ? error : unavailable()
    const { requestId, request } = context
    if (shown !== error) log.error({ err: error, method: request.method, request_id: requestId }, 'a request failed')
    end(context, context.replyError(shown))
  }

  function onTimeout(this: RequestContext): void {
    fail(this, this.deadlineError())
  }

  const publicRoute =
    <Params>(handle: Handler<Params>, name?: string): Route<Params> =>
    ({ request, params, route, receiver }) =>
      new Promise((resolve) => {
        const context = new RequestContext(request, name ?? route, resolve, onTimeout, findAddress, receiver, baseUrl)
        metrics.requests.began()
        track(context)
        // Handlers of requests that arrived together run back to back, which takes a signal from 60 to 53 µs at 256
        // connections.
        deferToImmediate(() => {
          try {
            // A result that comes after the deadline is dropped: the caller has been answered.
            handle(context, params).then(
              (response) => settle(context) && end(context, response),
              (error) => settle(context) && fail(context, error),
            )
          } catch (error) {
            if (settle(context)) fail(context, error)
          }
        })
      })

  /** The answer to a request that exceeds its rate; undefined to all others. */
  function rejectExceeded(context: RequestContext, rateUsage: RateUsage, by: RateLimit): Promise<Response> | undefined {
    context.rateUsage = rateUsage
    if (!rateUsage.isExceeded) return undefined
    metrics.rates.limited(by)
    return Promise.resolve(context.replyError(tooManyRequests(rateUsage, by)))
  }

  return {
    publicRoute,
    authenticated(scope, handle, name) {
      const route = publicRoute((context, params: Parameters<typeof handle>[1]) => {
        // The address comes before the key: a flood must cost nothing.
        const rejected = perAddress && rejectExceeded(context, perAddress.take(context.address), 'address_rate')
        if (rejected) return rejected
        const { headers } = context.request
        const verify = () => verifyKey(headers.get('authorization'), context)
        const enter = (caller: Caller) => {
          context.caller = caller
          context.verifyAgain = async () => {
            const { scopes } = await verify()
            const lost = caller.scopes.find((held) => !scopes.includes(held))
            if (lost) throw forbidden(lost)
          }
          if (caller.browser) context.cors = corsHeaders(headers.get('origin'), caller.browser.origins)
          if (scope !== null && !caller.scopes.includes(scope)) throw forbidden(scope)
          const rejected = perKey && rejectExceeded(context, perKey.take(caller.id), 'key_rate')
          return rejected ?? handle(context, params, caller)
        }
        const caller = verify()
        return caller instanceof Promise ? caller.then(enter) : enter(caller)
      }, name)
      // The scope is put on the route itself, so that the tests can walk the scopes of all routes.
      return Object.assign(route, { scope })
    },
  }
}

/** The answer when even the framework fails. */
export const crashResponse = (): Response =>
  new RequestContext(new Request('http://localhost')).replyError(unavailable())
