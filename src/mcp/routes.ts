import { type AnyElysia, Elysia } from 'elysia'
import { ServiceError } from '../errors.ts'
import { readJsonText } from '../http/body.ts'
import type { RouteWrapper } from '../http/middleware.ts'
import type { Operation } from '../http/operation.ts'
import type { RequestContext } from '../http/request_context.ts'
import type { Caller } from '../keys/caller.ts'
import { keepExactNumbers, parseJson } from '../lib/json.ts'
import { type CallTool, toolsOf } from './tools.ts'

type Call = { request: Request; params: object; route: string; outer: RequestContext }
type Route = (call: Call) => Promise<Response>

/** Room for the largest metadata with every letter escaped. The library would block the event loop with larger messages. */
const maxMessageBytes = 64 * 1024

/** The Model Context Protocol, for agents. Its tools are operations, called with the key of the agent. */
export function mcpRoutes(
  { version }: { version: string },
  { authenticated }: RouteWrapper,
  operations: Operation<never>[],
  { routes }: AnyElysia,
) {
  const tools = toolsOf(operations)

  /**
   * The route checks the key again, its scope and its rate. The calls of a batch run one after the other: a hundred together
   * would keep others waiting.
   */
  const callWith = (outer: RequestContext): CallTool => {
    let last = Promise.resolve<unknown>(undefined)
    return ({ operation: { method, path } }, { params, query, headers, body }) => {
      const route = `/api/v1${path}`
      const inner = new Request(`http://localhost/?${query}`, {
        method,
        headers: {
          ...headers,
          authorization: outer.request.headers.get('authorization') ?? '',
          'content-type': 'application/json',
          'x-request-id': outer.requestId,
        },
        ...(body === undefined ? {} : { body }),
      })
      const handler = routes.find((one) => one.method === method && one.path === route)?.handler as unknown as Route
      const response = last.then(() => {
        // The answer of a batch is a stream, which nothing else ends in time.
        if (performance.now() >= outer.deadline) throw outer.deadlineError()
        return handler({ request: inner, params, route, outer })
      })
      last = response
      return response
    }
  }

  const answer = async (context: RequestContext, _: object, caller: Caller): Promise<Response> => {
    const { request } = context
    if (caller.browser) throw new ServiceError('forbidden', 'A browser key may only record signals.')
    // A page could otherwise use a key that an agent keeps on the same machine.
    if (request.headers.has('origin')) throw new ServiceError('forbidden', 'Agents are not web pages: send no Origin.')
    const text = request.method === 'POST' ? await readJsonText(context, maxMessageBytes) : null
    const message = text === null ? undefined : parseJson(text, keepExactNumbers)
    const { answerMessage } = await import('./serve.ts')
    const allowed = tools.filter(({ operation: { scope } }) => scope === null || caller.scopes.includes(scope))
    const response = await answerMessage(request, message, version, allowed, callWith(context))
    return context.reply(response.status, response.body, Object.fromEntries(response.headers))
  }

  const route = authenticated(null, answer)
  // Clients of earlier versions try GET and DELETE, and expect a 405.
  return new Elysia({ name: 'mcp' }).post('/mcp', route).get('/mcp', route).delete('/mcp', route)
}
