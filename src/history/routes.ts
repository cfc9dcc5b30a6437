import { Elysia } from 'elysia'
import type { Db } from '../db/client.ts'
import { authenticated } from '../http/auth.ts'
import { describeOperation } from '../http/describe.ts'
import type { KeyVerifier } from '../keys/verify.ts'
import { type HistoryList, listHistory, type Paging } from './list.ts'
import { pagingLinks, readPaging } from './paging.ts'
import { HistoryPage, HistoryQuery } from './schema.ts'

type Services = { db: Db; verifyKey: KeyVerifier }

const detail = describeOperation({
  id: 'getPromptHistory',
  tag: 'History',
  summary: 'Get the edit history of a prompt',
  description:
    'Lists who changed the prompt, when, and how the change was deployed: newest first, a page at a time. ' +
    'A page past the end is empty and has the true totals.',
  query: HistoryQuery,
  success: { status: 200, description: 'One page of the history.', schema: HistoryPage, headers: ['Link'] },
  errors: [401, 404, 500],
})

export const historyRoutes = ({ db, verifyKey }: Services) =>
  new Elysia({ name: 'history' }).use(authenticated(verifyKey)).get(
    '/api/v1/prompts/:prompt_id/history',
    async ({ caller, inTime, params, request, set }) => {
      const paging = readPaging(new URL(request.url).searchParams)
      const list = await inTime(listHistory(db, caller.organisationId, params.prompt_id, paging))
      set.headers['content-type'] = 'application/json'
      set.headers.link = pagingLinks(`/api/v1/prompts/${params.prompt_id}/history`, paging, list)
      return writePage(list, paging)
    },
    { detail },
  )

/** Written by hand for the sake of current_page, which may be larger than a JavaScript number keeps exactly. */
function writePage({ entries, totalCount, totalPages }: HistoryList, { page, limit }: Paging): string {
  const pagination = `{"current_page":${page},"total_pages":${totalPages},"total_count":${totalCount},"per_page":${limit}}`
  return `{"data":${JSON.stringify(entries)},"pagination":${pagination}}`
}
