import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import { crashResponse } from './envelope.ts'
import { notesOf } from './notes.ts'

export type Handler = (request: Request) => Response | Promise<Response>

export type RequestObserver = {
  began(): void
  ended(request: { method: string; route: string; status: number; seconds: number }): void
}

type Services = { log: Log; clock: Clock; metrics: { requests: RequestObserver } }

/** Asked every few seconds by machines, which would drown everything else. */
const quietRoutes = new Set(['/livez', '/readyz', '/metrics'])

/** Around every route: a line in the log and a place in the metrics for each request, and an answer whatever happens. */
export const observed =
  (handle: Handler, services: Services): Handler =>
  (request) => {
    const end = begin(request, services)
    const fail = (error: unknown) => end(crash(error, request, services))
    try {
      const response = handle(request)
      // What is answered at once stays so: the server takes half as long again for a promise.
      return response instanceof Promise ? response.then(end, fail) : end(response)
    } catch (error) {
      return fail(error)
    }
  }

function begin(request: Request, { log, clock, metrics }: Services): (response: Response) => Response {
  const beganAt = performance.now()
  metrics.requests.began()
  return (response) => {
    const { method } = request
    const { status } = response
    const { route, caller, requestId, traceId } = notesOf(request)
    const ms = performance.now() - beganAt
    metrics.requests.ended({ method, route, status, seconds: ms / 1_000 })
    const level = quietRoutes.has(route) ? 'debug' : status >= 500 ? 'error' : 'info'
    const { org, key } = caller ?? {}
    log.request({ level, time: clock.now(), method, route, status, ms, org, key, requestId, traceId })
    return response
  }
}

function crash(error: unknown, request: Request, { log }: Services): Response {
  const { requestId } = notesOf(request)
  log.error({ err: error, method: request.method, request_id: requestId }, 'a request failed')
  return crashResponse(requestId)
}
