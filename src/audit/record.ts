import type { Clock } from '../clock.ts'
import type { Sql } from '../db/client.ts'
import { insertAuditEntry } from './store.ts'

/** Who made a change: the public id of a key, `cli` for an operator on the command line, `github` for a webhook. */
export type Actor = string

export const operator: Actor = 'cli'
export const githubWebhook: Actor = 'github'

export type AuditEvent = {
  organisationId: number
  action:
    | 'key.created'
    | 'key.updated'
    | 'key.revoked'
    | 'key.rotated'
    | 'plan.changed'
    | 'organisation.suspended'
    | 'organisation.resumed'
    | 'prompt.created'
    | 'prompt.updated'
    | 'repository.renamed'
    | 'webhook.secret_set'
  /** The public id of what was changed. */
  subject: string
  /** What it was changed to; never a secret. */
  details?: Record<string, unknown>
}

/** Writes to the audit log, within the transaction of the change itself: either both are kept or neither. */
export const recordAudit = (
  sql: Sql,
  clock: Clock,
  actor: Actor,
  { organisationId, action, subject, details = {} }: AuditEvent,
): Promise<void> => insertAuditEntry(sql, { organisationId, actor, action, subject, details, createdAt: clock.now() })
