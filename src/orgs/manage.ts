import { operator, recordAudit } from '../audit/record.ts'
import type { AuditEvent } from '../audit/schema.ts'
import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { notFound, ServiceError } from '../errors.ts'
import { randomBase62 } from '../lib/base62.ts'
import { monthOf } from '../lib/months.ts'
import { requireName } from '../lib/texts.ts'
import {
  findOrganisationId,
  insertOrganisation,
  type OrganisationRow,
  selectOrganisations,
  updatePlan,
  updateRetention,
  updateStoreText,
  updateSuspension,
} from './store.ts'

export { findOrganisationsNamed, hasOrganisations, selectRetentions } from './store.ts'

type Organisation = OrganisationRow & { resets_at: string }

/** The organisation that something belongs to, by its public id and its row id. */
export type Owner = { org: string; organisationId: number }

/** The signals per month of each plan. An organisation keeps the limit that it got with its plan, or instead of it. */
export const plans = { free: 1_000, team: 10_000, business: 100_000 }

export type Plan = keyof typeof plans

type NewOrganisation = { name: string; plan: Plan; monthlyLimit: number | null }

export const createOrganisation = (db: Db, clock: Clock, given: NewOrganisation) =>
  db.transaction(async (sql) => {
    const id = `org_${randomBase62(16)}`
    const { plan, monthlyLimit } = given
    const details = { name: requireName(given.name), plan, monthly_limit: monthlyLimit ?? plans[plan] }
    const organisationId = await insertOrganisation(sql, { id, ...details }, clock.now())
    const action = 'organisation.created'
    await recordAudit(sql, clock, operator, { organisationId, action, subject: id, details })
    return { id, ...details }
  })

/** Changes the plan. With `monthlyLimit` null the organisation gets the limit of its plan. */
export async function setPlan(db: Db, clock: Clock, org: string, plan: Plan, monthlyLimit: number | null) {
  const limit = monthlyLimit ?? plans[plan]
  const event = { action: 'plan.changed', details: { plan, monthly_limit: limit } } as const
  return changeOrganisation(db, clock, org, event, (sql, id) => updatePlan(sql, id, plan, limit))
}

/** Sets the retention in days; null keeps signals forever. */
export function setRetention(db: Db, clock: Clock, org: string, days: number | null): Promise<Organisation> {
  const event = { action: 'retention.changed', details: { retention_days: days } } as const
  return changeOrganisation(db, clock, org, event, (sql, id) => updateRetention(sql, id, days))
}

/** Says whether the texts of the organisation's prompts may be stored. The caller erases those that were. */
export function setStoreText(db: Db, clock: Clock, org: string, storeText: boolean): Promise<Organisation> {
  const event = { action: 'organisation.updated', details: { store_text: storeText } } as const
  return changeOrganisation(db, clock, org, event, (sql, id) => updateStoreText(sql, id, storeText))
}

/** While it is suspended, every replica rejects the keys of an organisation, after at most a second; its data stays. */
export function setSuspended(db: Db, clock: Clock, org: string, isSuspended: boolean): Promise<Organisation> {
  const event = { action: isSuspended ? 'organisation.suspended' : 'organisation.resumed' } as const
  const at = isSuspended ? clock.now() : null
  return changeOrganisation(db, clock, org, event, (sql, id) => updateSuspension(sql, id, at))
}

/** Changes an organisation and records an audit entry, unless the update changes nothing. */
async function changeOrganisation(
  db: Db,
  clock: Clock,
  org: string,
  event: Pick<AuditEvent, 'action' | 'details'>,
  update: (sql: Sql, id: number) => Promise<object[]>,
): Promise<Organisation> {
  const { organisationId } = await requireOrganisation(db, org)
  await db.transaction(async (sql) => {
    const changed = await update(sql, organisationId)
    if (changed.length > 0) await recordAudit(sql, clock, operator, { ...event, organisationId, subject: org })
  })
  return readOrganisation(db, clock, organisationId)
}

export async function readOrganisation(db: Db, clock: Clock, organisationId: number): Promise<Organisation> {
  const [organisation] = await listOrganisations(db, clock, organisationId)
  // Only a failover that lost the organisation leads here.
  if (!organisation) throw notFound()
  return organisation
}

export async function listOrganisations(db: Db, clock: Clock, id: number | null = null): Promise<Organisation[]> {
  const month = monthOf(clock.now())
  const rows = await selectOrganisations(db.sql, month.date, id)
  return rows.map((row) => ({ ...row, resets_at: month.resetsAt }))
}

export async function requireOrganisation(db: Db, org: string): Promise<Owner> {
  const organisationId = await findOrganisationId(db.sql, org)
  if (organisationId === undefined) throw new ServiceError('not_found', `There is no organisation ${org}.`)
  return { org, organisationId }
}
