import type { Db } from '../db/client.ts'
import { defineOperations, operation } from '../http/operation.ts'
import { pageAnswer } from '../http/paging.ts'
import { cursorParams } from '../lib/cursor_page.ts'
import { listAudit } from './record.ts'
import { AuditEntryList } from './schema.ts'

export const auditOperations = defineOperations('Audit', {
  listAudit: operation({
    method: 'GET',
    path: '/audit',
    scope: 'keys:read',
    summary: 'Read the audit log',
    description:
      'Every change of a key, a plan, a prompt, a webhook secret or a suspension: who made it, what and when, newest first.',
    query: cursorParams,
    answer: pageAnswer('A page of the audit log.', AuditEntryList),
    run: ({ db }: { db: Db }, { query, caller }) => listAudit(db, caller.organisationId, query),
  }),
})
