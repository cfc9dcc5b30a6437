import type { Clock } from '../clock.ts'
import {
  forbidden,
  internalError,
  ServiceError,
  UnavailableError,
  type UnavailableReason,
  unavailable,
} from '../errors.ts'
import type { Caller, KeyVerifier } from '../keys/caller.ts'
import { settle, watchDeadline } from '../lib/deadline.ts'
import type { Scope } from '../lib/scopes.ts'
import type { Log } from '../log.ts'
import type { Receiver } from '../platform.ts'
import type { Drain } from './drain.ts'
import {
  type RateLimitKind,
  type RateLimitObserver,
  type RateLimits,
  type RateUsage,
  tooManyRequests,
} from './rate_limit.ts'
import { corsHeaders, RequestContext, requireAllowedPrompt } from './request_context.ts'

type Context<Params> = {
  request: Request
  params: Params
  route: string
  receiver?: Receiver
  /** The request that this one is a part of: a tool call (src/mcp). */
  outer?: RequestContext
}
type Route<Params> = ((context: Context<Params>) => Promise<Response>) & { scope?: Scope | null }

export type RouteWrapper = ReturnType<typeof createRouteWrapper>

export type RequestObserver = {
  began(): void
  ended(method: string, route: string, status: number, seconds: number): void
  unavailable(reason: UnavailableReason): void
}

type Services = {
  log: Log
  clock: Clock
  metrics: { requests: RequestObserver; rates: RateLimitObserver }
  drain: Drain
  /** Returns why the database is unavailable; undefined for an unexpected error. */
  whyUnavailable(error: unknown): UnavailableReason | undefined
  verifyKey: KeyVerifier
  /** Counts the connections to the database that were lost. */
  lostConnections(): number
  rateLimits: RateLimits
  baseUrl: string
}

/** The levels of request lines by status; any other is `info`. */
const levels: Record<number, 'error' | 'warn'> = { 500: 'error', 503: 'warn' }
/** Routes that monitoring calls every few seconds. Their lines would drown all others in the log. */
const quietRoutes = new Set(['/livez', '/readyz', '/metrics'])

/** Wraps every handler into a route. The hooks of the framework could do the same, but cost throughput (docs/decisions/002). */
export function createRouteWrapper(services: Services) {
  const { log, clock, metrics, drain, whyUnavailable, verifyKey, lostConnections, baseUrl } = services
  const { perKey, perAddress, findAddress } = services.rateLimits

  function end(context: RequestContext, response: Response): void {
    const { request, route, caller, requestId, traceId, beganAt } = context
    const { method } = request
    const { status } = response
    const endedAt = performance.now()
    const ms = endedAt - beganAt
    drain.answered(endedAt)
    if (drain.isDraining) response.headers.set('connection', 'close')
    metrics.requests.ended(method, route, status, ms / 1_000)
    const level = quietRoutes.has(route) ? 'debug' : (levels[status] ?? 'info')
    const { org, key } = caller ?? {}
    log.request({ level, time: clock.now(), method, route, status, ms, org, key, requestId, traceId })
    context.onAnswered?.()
    if (context.isBodyRead || method === 'GET') {
      context.send(response)
    } else {
      // Bun would keep an unread body until the request is collected: gigabytes, if unknown keys bring large ones.
      request.body?.cancel().catch(() => {})
      // Bun runs other tasks while it discards an unread body: thousands of direct sends would overflow the stack.
      setImmediate(context.send, response)
    }
  }

  function fail(context: RequestContext, error: unknown): void {
    const shown = error instanceof ServiceError ? error : toServiceError(error)
    if (shown instanceof UnavailableError) metrics.requests.unavailable(shown.reason)
    if (shown !== error) {
      const fields = { err: error, method: context.request.method, request_id: context.requestId }
      if (shown instanceof UnavailableError) log.warn({ ...fields, reason: shown.reason }, 'request not served')
      else log.error(fields, 'request failed')
    }
    end(context, context.replyError(shown))
  }

  function toServiceError(error: unknown): ServiceError {
    const reason = whyUnavailable(error)
    return reason ? unavailable(reason) : internalError()
  }

  function onTimeout(this: RequestContext): void {
    fail(this, this.deadlineError())
  }

  /** Wraps a handler that needs no key. The log and the metrics name the route by its template, unless a name is given. */
  const publicRoute =
    <Params>(handle: (context: RequestContext, params: Params) => Promise<Response>, name?: string): Route<Params> =>
    ({ request, params, route, receiver, outer }) =>
      new Promise((resolve) => {
        const context = new RequestContext(request, name ?? route, resolve, onTimeout, receiver, baseUrl)
        if (outer) Object.assign(context, { outer, deadline: outer.deadline })
        metrics.requests.began()
        // One timer looks at all requests, so that a deadline may still move (pauseDeadline).
        watchDeadline(context)
        // Handlers of requests that arrived together run back to back, which raises throughput.
        deferToImmediate(() => {
          try {
            // `settle` is true once: a result after the deadline is dropped, because the client already has a response.
            handle(context, params).then(
              (response) => settle(context) && end(context, response),
              (error) => settle(context) && fail(context, error),
            )
          } catch (error) {
            if (settle(context)) fail(context, error)
          }
        })
      })

  function rejectExceeded(context: RequestContext, rateUsage: RateUsage | undefined, by: RateLimitKind) {
    if (!rateUsage) return undefined
    context.rateUsage = rateUsage
    if (!rateUsage.isExceeded) return undefined
    metrics.rates.limited(by)
    return Promise.resolve(context.replyError(tooManyRequests(rateUsage, by)))
  }

  return {
    publicRoute,
    /**
     * Checks, in this order: the rate of the address, the key, its origin and scope, the rate of the key, the prompt. The
     * body is read after that. The scope null accepts any key: for its own data, and 404s.
     */
    authenticated<Params>(
      scope: Scope | null,
      handle: (context: RequestContext, params: Params, caller: Caller) => Promise<Response>,
      name?: string,
      scopeFor?: (query: URLSearchParams) => Scope,
    ): Route<Params> {
      const requireAccess = (context: RequestContext, { scopes, browser }: Caller) => {
        // Reset first: if the check throws, the error must carry no CORS headers.
        context.cors = undefined
        if (browser) context.cors = corsHeaders(context.request.headers.get('origin'), browser.origins)
        const needed = scopeFor ? scopeFor(context.searchParams) : scope
        if (needed !== null && !scopes.includes(needed)) throw forbidden(needed)
      }
      const verifyCurrent = async (context: RequestContext, params: Params) => {
        const current = await verifyKey(context.request.headers.get('authorization'))
        requireAccess(context, current)
        requireAllowedPrompt(current, params)
        return current
      }
      // After a failover that lost changes, ids may be used again: the rows that were read may be of another organisation.
      const readAgain = async (context: RequestContext, params: Params, response: Response): Promise<Response> => {
        const lostBefore = lostConnections()
        response.body?.cancel().catch(() => {})
        const caller = await verifyCurrent(context, params)
        context.caller = caller
        const again = await handle(context, params, caller)
        return lostConnections() === lostBefore ? again : readAgain(context, params, again)
      }
      const route = publicRoute((context, params: Params) => {
        // The address is checked before the key, so that a flood costs no look-ups.
        const { request, outer = context } = context
        const addressUsage = perAddress?.take(findAddress(outer.request, outer.receiver))
        const rejected = rejectExceeded(context, addressUsage, 'address_rate')
        if (rejected) return rejected
        const lostBefore = lostConnections()
        const enter = (caller: Caller) => {
          context.caller = caller
          context.verifyAgain = () => verifyCurrent(context, params)
          requireAccess(context, caller)
          const rejected = rejectExceeded(context, perKey?.take(caller.id), 'key_rate')
          if (rejected) return rejected
          requireAllowedPrompt(caller, params)
          const answer = handle(context, params, caller)
          if (request.method !== 'GET') return answer
          return answer.then((response) =>
            lostConnections() === lostBefore ? response : readAgain(context, params, response),
          )
        }
        // No promise for a cached key: `T | Promise<T>` here and in KeyVerifier is measurable in throughput.
        const caller = verifyKey(request.headers.get('authorization'))
        return caller instanceof Promise ? caller.then(enter) : enter(caller)
      }, name)
      // The tests read the scopes of all routes from here.
      return Object.assign(route, { scope })
    },
  }
}

let deferred: (() => void)[] = []

/** Runs all deferred work back to back at the end of this turn of the event loop, from warm processor caches. */
function deferToImmediate(work: () => void): void {
  if (deferred.push(work) > 1) return
  setImmediate(() => {
    const works = deferred
    deferred = []
    for (const one of works) one()
  })
}

/** The response when even the framework fails. */
export const crashResponse = (): Response =>
  new RequestContext(new Request('http://localhost')).replyError(internalError())
