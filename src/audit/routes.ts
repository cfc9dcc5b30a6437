import { Elysia } from 'elysia'
import type { Services } from '../deps.ts'
import { describeOperations } from '../http/describe.ts'
import type { RouteWrapper } from '../http/middleware.ts'
import { describePage, pageRequestOf, replyPage } from '../http/paging.ts'
import { listAudit } from './record.ts'
import { AuditEntryList } from './schema.ts'

const operations = describeOperations('Audit', {
  listAudit: {
    summary: 'Read the audit log',
    description:
      'Every change of a key, a plan, a prompt, a webhook secret or a suspension: who made it, what and when, newest first.',
    ...describePage('A page of the audit log.', AuditEntryList),
  },
})

export const auditRoutes = ({ db }: Services, { authenticated }: RouteWrapper) =>
  new Elysia({ name: 'audit' }).get(
    '/api/v1/audit',
    authenticated('keys:read', async (context, _: object, { organisationId }) =>
      replyPage(context, await listAudit(db, organisationId, pageRequestOf(context))),
    ),
    { detail: operations.listAudit },
  )
