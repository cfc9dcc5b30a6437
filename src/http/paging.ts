import type { TSchema } from '@sinclair/typebox'
import { type CursorPage, cursorParams, type PageRequest } from '../lib/cursor_page.ts'
import { maxLinkLength } from '../lib/numbered_page.ts'
import type { RequestContext } from './request_context.ts'

export const describePage = (description: string, schema: TSchema) => ({
  query: cursorParams,
  success: { status: 200, description, schema, sometimes: ['Link' as const] },
})

export const pageRequestOf = ({ searchParams }: RequestContext): PageRequest => cursorParams.parse(searchParams)

export const replyPage = <Row>(context: RequestContext, { data, limit, nextCursor }: CursorPage<Row>): Response =>
  replyJsonPage(context, context.route, JSON.stringify(data), limit, nextCursor)

/** The same for rows that are JSON already, and a path that is not the route's. */
export function replyJsonPage(
  context: RequestContext,
  path: string,
  data: string,
  limit: number,
  nextCursor: string | null,
): Response {
  const pagination = JSON.stringify({ per_page: limit, next_cursor: nextCursor })
  const body = `{"data":${data},"pagination":${pagination}}`
  if (nextCursor === null) return context.reply(200, body)
  const query = context.searchParams
  query.set('limit', String(limit))
  query.set('cursor', nextCursor)
  const link = `<${context.baseUrl}${path}?${query}>; rel="next"`
  // The body has the cursor too.
  return context.reply(200, body, link.length <= maxLinkLength ? { link } : {})
}
