import type { TSchema } from '@sinclair/typebox'
import { type CursorPage, cursorParams, type PageRequest } from '../lib/cursor_page.ts'
import type { RequestContext } from './request_context.ts'

/** What the document says of a query that is not valid, with this mistake as its example. */
export const describeInvalidQuery = (
  path: string,
  message: string,
  meaning = 'A parameter of the query is not valid.',
) => ({
  meaning,
  message: 'The query is not valid.',
  example: { details: [{ path, message }] },
})

/** What the document says of every list that is read by cursor. */
export const describePage = (description: string, schema: TSchema) => ({
  query: cursorParams.schema,
  success: { status: 200, description, schema, sometimes: ['Link' as const] },
  invalid: describeInvalidQuery(
    'cursor',
    'must be the next_cursor of an earlier page of this list, with the same filters',
  ),
})

/** The text of a request's query, from the question mark on; the rest of its address may be malformed. */
export function queryTextOf({ url }: Request): string {
  const start = url.indexOf('?')
  return start < 0 ? '' : url.slice(start)
}

export const searchOf = (request: Request): URLSearchParams => new URLSearchParams(queryTextOf(request))

/** The page that a request asks for. */
export const pageRequestOf = ({ request }: RequestContext): PageRequest => cursorParams.parse(searchOf(request))

/** A page of a list that is read by cursor, with a link to the next one. */
export const replyPage = <Row>(context: RequestContext, { data, limit, nextCursor }: CursorPage<Row>): Response =>
  replyJsonPage(context, context.route, JSON.stringify(data), limit, nextCursor)

/** A page of a list whose rows are JSON already, and whose path is not that of the route. */
export function replyJsonPage(
  context: RequestContext,
  path: string,
  data: string,
  limit: number,
  nextCursor: string | null,
): Response {
  const body = `{"data":${data},"pagination":${JSON.stringify({ per_page: limit, next_cursor: nextCursor })}}`
  if (nextCursor === null) return context.reply(200, body)
  const query = searchOf(context.request)
  query.set('limit', String(limit))
  query.set('cursor', nextCursor)
  return context.reply(200, body, { link: `<${context.baseUrl}${path}?${query}>; rel="next"` })
}
