import type { TSchema } from '@sinclair/typebox'
import type { CursorPage } from '../lib/cursor_page.ts'
import { maxLinkLength } from '../lib/numbered_page.ts'
import type { RequestContext } from './request_context.ts'

export const pageAnswer = (description: string, schema: TSchema) => ({
  status: 200,
  description,
  schema,
  sometimes: ['Link' as const],
  shape: 'page' as const,
})

/** Rows may be JSON already: `[…]`. */
export function replyPage<Row>(context: RequestContext, path: string, page: CursorPage<Row> | JsonPage): Response {
  const { data, limit, nextCursor } = page
  const rows = typeof data === 'string' ? data : JSON.stringify(data)
  const pagination = JSON.stringify({ per_page: limit, next_cursor: nextCursor })
  const body = `{"data":${rows},"pagination":${pagination}}`
  if (nextCursor === null) return context.reply(200, body)
  const query = context.searchParams
  query.set('limit', String(limit))
  query.set('cursor', nextCursor)
  const link = `<${context.baseUrl}${path}?${query}>; rel="next"`
  // The body has the cursor too.
  return context.reply(200, body, link.length <= maxLinkLength ? { link } : {})
}

type JsonPage = Omit<CursorPage<never>, 'data'> & { data: string }
