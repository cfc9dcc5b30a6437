import type { Sql } from '../db/client.ts'

export type OrganisationRow = {
  id: string
  name: string
  plan: string
  monthly_limit: number
  used: number
  retention_days: number | null
  store_text: boolean
  suspended_at: Date | null
}

export async function findOrganisationId(sql: Sql, publicId: string): Promise<number | undefined> {
  const [row] = await sql<{ id: number }>`select id from organisations where public_id = ${publicId}`
  return row?.id
}

export async function findOrganisationsNamed(sql: Sql, name: string): Promise<string[]> {
  const rows = await sql<{
    id: string
  }>`select public_id as id from organisations where name = ${name} order by id limit 2`
  return rows.map(({ id }) => id)
}

export async function hasOrganisations(sql: Sql): Promise<boolean> {
  const rows = await sql`select from organisations limit 1`
  return rows.length > 0
}

type NewOrganisation = Pick<OrganisationRow, 'id' | 'name' | 'plan' | 'monthly_limit'>

/** Returns the row id. */
export async function insertOrganisation(sql: Sql, given: NewOrganisation, createdAt: Date): Promise<number> {
  const [row] = await sql<{ id: number }>`
    insert into organisations (public_id, name, plan, monthly_limit, created_at)
    values (${given.id}, ${given.name}, ${given.plan}, ${given.monthly_limit}, ${createdAt})
    returning id`
  return row?.id as number
}

/** Each update returns a row if it changes anything; a plan is always set. */
export const updatePlan = (sql: Sql, id: number, plan: string, monthlyLimit: number) =>
  sql`update organisations set plan = ${plan}, monthly_limit = ${monthlyLimit} where id = ${id} returning 1`

export const updateRetention = (sql: Sql, id: number, days: number | null) =>
  sql`
    update organisations set retention_days = ${days}
    where id = ${id} and retention_days is distinct from ${days}::integer
    returning 1`

export const updateStoreText = (sql: Sql, id: number, storeText: boolean) =>
  sql`update organisations set store_text = ${storeText} where id = ${id} and store_text <> ${storeText} returning 1`

export const selectRetentions = (sql: Sql) =>
  sql<{ organisationId: number; org: string; days: number }>`
    select id as "organisationId", public_id as org, retention_days as days
    from organisations where retention_days is not null
    order by id`

export const updateSuspension = (sql: Sql, id: number, suspendedAt: Date | null) =>
  sql`
    update organisations set suspended_at = ${suspendedAt}
    where id = ${id} and (suspended_at is null) <> (${suspendedAt}::timestamptz is null)
    returning 1`

export const selectOrganisations = (sql: Sql, month: string, id: number | null) =>
  sql<OrganisationRow>`
    select
      o.public_id as id, o.name, o.plan, u.monthly_limit, u.used, o.retention_days, o.store_text, o.suspended_at
    from organisations o
    cross join lateral usages_of(array[o.id], array[${month}::text::date]) u
    where o.id between ${id ?? 0} and ${id ?? Number.MAX_SAFE_INTEGER}
    order by o.id`
