import { Type } from '@sinclair/typebox'
import { cursorPageOf } from '../lib/cursor_page.ts'
import { nullable, type Row } from '../lib/typebox.ts'

export const AuditEntry = Type.Object(
  {
    id: Type.Integer({ format: 'int64' }),
    actor: Type.String({
      description:
        'Public id of the key that made the change, cli for an operator, github for an event of the webhook, retention for expired signals, or delivery for an endpoint that was disabled',
    }),
    actor_name: nullable(Type.String(), 'Name that the key of the actor has now; null for any other actor'),
    action: Type.String({ description: 'What was done, such as key.created' }),
    subject: Type.String({ description: 'Public id of what was changed' }),
    subject_name: nullable(Type.String(), 'Name that the changed key or prompt has now; null for anything else'),
    details: Type.Object({}, { additionalProperties: true, description: 'What it was changed to; never a secret' }),
    created_at: Type.String({ format: 'date-time' }),
  },
  { title: 'AuditEntry' },
)

export type AuditRow = Row<typeof AuditEntry>

export const AuditEntryList = cursorPageOf(AuditEntry, {
  id: 17,
  actor: 'key_8sQxVn2c1LrT0aZk',
  actor_name: 'console',
  action: 'key.revoked',
  subject: 'key_0pLmWc5y9BqE3nRd',
  subject_name: 'website',
  details: {},
  created_at: '2026-11-14T23:35:00.000Z',
})

export type AuditEvent = {
  organisationId: number
  action:
    | 'key.created'
    | 'key.updated'
    | 'key.revoked'
    | 'key.rotated'
    | 'organisation.created'
    | 'plan.changed'
    | 'retention.changed'
    | 'organisation.suspended'
    | 'organisation.resumed'
    | 'organisation.updated'
    | 'prompt.created'
    | 'prompt.updated'
    | 'prompt.texts_erased'
    | 'prompt.erased'
    | 'repository.renamed'
    | 'webhook.secret_set'
    | 'endpoint.created'
    | 'endpoint.updated'
    | 'endpoint.rotated'
    | 'endpoint.removed'
    | 'endpoint.redelivered'
    | 'history.changed'
    | 'history.removed'
    | 'signal.erased'
    | 'signals.purged'
    | 'signals.expired'
    | 'endpoint.disabled'
  subject: string
  /** What it was changed to; never a secret. */
  details?: Record<string, unknown>
}
