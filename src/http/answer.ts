import type { Clock } from '../clock.ts'
import { ServiceError, statusOfCode, unavailable } from '../errors.ts'
import type { Caller, KeyVerifier } from '../keys/verify.ts'
import { before } from '../lib/deadline.ts'
import type { Log } from '../log.ts'
import { Exchange } from './exchange.ts'

/** What Elysia hands to a route. */
type Context<Params> = { request: Request; params: Params; route: string }
type Route<Params> = (context: Context<Params>) => Promise<Response>

export type Handler<Params> = (exchange: Exchange, params: Params) => Promise<Response>
export type KeyedHandler<Params> = (exchange: Exchange, params: Params, caller: Caller) => Promise<Response>

/** Makes routes of handlers. The log and the metrics know a route by its template, unless it is given a name. */
export type Answering = {
  open<Params>(handle: Handler<Params>, name?: string): Route<Params>
  /** For callers with a key, which is checked before anything else of the request is looked at. */
  keyed<Params>(handle: KeyedHandler<Params>, name?: string): Route<Params>
}

export type RequestObserver = {
  began(): void
  ended(request: { method: string; route: string; status: number; seconds: number }): void
}

type Services = { log: Log; clock: Clock; metrics: { requests: RequestObserver }; verifyKey: KeyVerifier }

/** Asked every few seconds by machines, which would drown everything else. */
const quietRoutes = new Set(['/livez', '/readyz', '/metrics'])

/**
 * One function around each handler, instead of the framework's hooks, which cost more than what they would do here:
 * the request's id, its key, an answer in the envelope whatever is thrown, its line in the log and its place in
 * the metrics.
 */
export function createAnswering({ log, clock, metrics, verifyKey }: Services): Answering {
  function note({ request, caller, requestId, traceId, beganAt }: Exchange, route: string, status: number): void {
    const { method } = request
    const ms = performance.now() - beganAt
    metrics.requests.ended({ method, route, status, seconds: ms / 1_000 })
    const level = quietRoutes.has(route) ? 'debug' : status >= 500 ? 'error' : 'info'
    const { org, key } = caller ?? {}
    log.request({ level, time: clock.now(), method, route, status, ms, org, key, requestId, traceId })
  }

  function refuse(exchange: Exchange, error: unknown): Response {
    const shown = error instanceof ServiceError ? error : unavailable()
    const { requestId, request } = exchange
    if (shown !== error) log.error({ err: error, method: request.method, request_id: requestId }, 'a request failed')
    return refusal(exchange, shown)
  }

  const open =
    <Params>(handle: Handler<Params>, name?: string): Route<Params> =>
    async ({ request, params, route }) => {
      const exchange = new Exchange(request)
      metrics.requests.began()
      let response: Response
      try {
        response = await before(exchange, handle(exchange, params))
      } catch (error) {
        response = refuse(exchange, error)
      }
      note(exchange, name ?? route, response.status)
      return response
    }

  return {
    open,
    keyed: (handle, name) =>
      open(async (exchange, params) => {
        const caller = await verifyKey(exchange.request.headers.get('authorization'))
        exchange.caller = caller
        return handle(exchange, params, caller)
      }, name),
  }
}

function refusal(exchange: Exchange, { code, message, context, headers }: ServiceError): Response {
  const error = { code, message, ...context, request_id: exchange.requestId }
  return exchange.reply(statusOfCode[code], JSON.stringify({ error }), headers)
}

/** The answer when even the framework fails. */
export const crashResponse = (): Response => refusal(new Exchange(new Request('http://localhost')), unavailable())
