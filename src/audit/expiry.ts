import type { Sql } from '../db/client.ts'
import { addErased, insertAuditEntries } from './store.ts'

type Expiry = { organisationId: number; org: string; before: Date; erased: number }

/**
 * Records expired signals within the transaction that erases them. Adds to the entry of the organisation's day if this
 * process wrote one: an entry for every step would drown all others.
 */
export function createExpiryAudit() {
  const latest = new Map<number, { day: string; id: number }>()
  return async (sql: Sql, now: Date, { organisationId, org, before, erased }: Expiry): Promise<void> => {
    const day = now.toISOString().slice(0, 10)
    const entry = latest.get(organisationId)
    // The entry is missing when the transaction that wrote it was rolled back.
    if (entry?.day === day && (await addErased(sql, organisationId, entry.id, before, erased))) return
    const details = { before: before.toISOString(), erased }
    const event = { organisationId, action: 'signals.expired', subject: org, details } as const
    const [id] = await insertAuditEntries(sql, 'retention', now, [event])
    if (id !== undefined) latest.set(organisationId, { day, id })
  }
}
