import { Elysia } from 'elysia'
import type { Db } from '../db/client.ts'
import type { RouteWrapper } from '../http/answer.ts'
import { describeOperation } from '../http/describe.ts'
import { invalidCursor, replyPage, searchOf } from '../http/paging.ts'
import { PageQuery, parsePageRequest } from '../lib/cursor_page.ts'
import { listAudit } from './list.ts'
import { AuditEntryList } from './schema.ts'

const listing = describeOperation({
  id: 'listAudit',
  tag: 'Audit',
  summary: 'Read the audit log',
  description:
    'Every change of a key, a plan, a prompt, a webhook secret or a suspension: who made it, what and when, newest first.',
  query: PageQuery,
  success: {
    status: 200,
    description: 'A page of the audit log.',
    schema: AuditEntryList,
    sometimes: ['Link'],
  },
  errors: [401, 403, 422, 500],
  invalid: invalidCursor,
})

export const auditRoutes = ({ db }: { db: Db }, { authenticated }: RouteWrapper) =>
  new Elysia({ name: 'audit' }).get(
    '/api/v1/audit',
    authenticated('keys:read', async (exchange, _: object, { organisationId }) => {
      const request = parsePageRequest(searchOf(exchange.request))
      return replyPage(exchange, await listAudit(db, organisationId, request))
    }),
    { detail: listing },
  )
