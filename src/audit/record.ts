import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { ServiceError } from '../errors.ts'
import type { Actor } from '../keys/caller.ts'
import type { PermitRequest } from '../lib/concurrency.ts'
import { type PageRequest, readPage } from '../lib/cursor_page.ts'
import type { AuditEvent, AuditRow } from './schema.ts'
import { insertAuditEntries, selectAuditEntries } from './store.ts'

export type { Actor }

export const operator: Actor = { name: 'cli' }

export const github: Actor = { name: 'github' }

/** Who looks for something. Without an organisation, it finds what any has. */
export type Viewer = Pick<Actor, 'organisationId'>

const idPrefixes = { key: 'key_', endpoint: 'whe_' }

/** Finds something by its id. What another organisation has is answered exactly like what does not exist. */
export async function requireOwn<T extends { organisationId: number }>(
  noun: keyof typeof idPrefixes,
  id: string,
  viewer: Viewer,
  find: () => Promise<T | undefined>,
): Promise<T> {
  // Anything else is not looked up: Postgres rejects text with a zero byte.
  const found = new RegExp(`^${idPrefixes[noun]}[0-9A-Za-z]{1,64}$`).test(id) ? await find() : undefined
  const isVisible = found && (viewer.organisationId === undefined || viewer.organisationId === found.organisationId)
  if (!isVisible) throw new ServiceError('not_found', `There is no ${noun} ${id}.`)
  return found
}

/** Limits an organisation's changes to its share of the transactions, and to the deadline of the request. */
export const permitRequestOf = ({ organisationId, request }: Actor): PermitRequest => ({
  tenant: organisationId,
  deadline: request?.deadline,
})

/** Writes to the audit log within the transaction of the change: both are kept or neither. */
export const recordAudit = (sql: Sql, clock: Clock, actor: Actor, ...events: AuditEvent[]): Promise<unknown> =>
  insertAuditEntries(sql, actor.name, clock.now(), events)

export const listAudit = (db: Db, organisationId: number, request: PageRequest) =>
  readPage<AuditRow>(`audit ${organisationId}`, request, (beforeId, limit) =>
    selectAuditEntries(db.sql, organisationId, beforeId, limit),
  )
