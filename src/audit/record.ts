import type { Clock } from '../clock.ts'
import type { Sql } from '../db/client.ts'
import type { Deadline } from '../lib/deadline.ts'
import type { PermitRequest } from '../lib/semaphore.ts'
import type { AuditEvent } from './schema.ts'
import { insertAuditEntries } from './store.ts'

/** Who makes a change. What is not bound to an organisation may change any; what has no scopes may grant any. */
export type Actor = { name: string; organisationId?: number; scopes?: readonly string[]; request?: Deadline }

/** An operator on the command line of the machine. */
export const operator: Actor = { name: 'cli' }

/** A caller of the interface, who is named by the public id of their key and waits until the deadline of the request. */
export const keyHolder = (
  caller: { key: string; organisationId: number; scopes: readonly string[] },
  request: Deadline,
): Actor => ({
  name: caller.key,
  organisationId: caller.organisationId,
  scopes: caller.scopes,
  request,
})

/**
 * Changes that an organisation makes itself have no more than its share of the transactions, and are made before their
 * caller gets an error or not at all.
 */
export const permitRequestOf = ({ organisationId, request }: Actor): PermitRequest => ({
  tenant: organisationId,
  deadline: request?.deadline,
})

/** Writes to the audit log, within the transaction of the change itself: either both are kept or neither. */
export const recordAudit = (sql: Sql, clock: Clock, actor: Actor, ...events: AuditEvent[]): Promise<void> =>
  insertAuditEntries(sql, actor.name, clock.now(), events)
