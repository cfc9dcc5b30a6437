import type { Sql } from '../db/client.ts'
import type { RepositoryRef } from './facts.ts'

export type Webhook = { org: string; organisationId: number; secret: string }

export async function findWebhook(sql: Sql, org: string): Promise<Webhook | undefined> {
  const [row] = await sql<Webhook>`
    select org, organisation_id as "organisationId", secret from find_github_webhook(${org})`
  return row
}

export async function upsertWebhook(sql: Sql, organisationId: number, secret: string, at: Date): Promise<void> {
  await sql`
    insert into github_webhooks (organisation_id, secret, created_at)
    values (${organisationId}, ${secret}, ${at})
    on conflict (organisation_id) do update set secret = excluded.secret, created_at = excluded.created_at`
}

/**
 * Makes Postgres plan each statement of the transaction anew, and with indexes. A cached plan from when the tables were
 * nearly empty would scan them, or use the wrong index, once they have grown.
 */
export async function requireIndexPlans(sql: Sql): Promise<void> {
  await sql`
    select set_config('plan_cache_mode', 'force_custom_plan', true), set_config('enable_seqscan', 'off', true)`
}

/** Locks the repository until the end of the transaction. */
export async function lockRepository(sql: Sql, { organisationId, repository }: RepositoryRef): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtext('github'), hashtext(${`${organisationId} ${repository}`}))`
}

/** Returns false when the delivery was recorded before. */
export async function insertDelivery(sql: Sql, organisationId: number, delivery: string, at: Date): Promise<boolean> {
  const rows = await sql`
    insert into github_deliveries (organisation_id, delivery, received_at)
    values (${organisationId}, ${delivery}, ${at})
    on conflict do nothing
    returning 1`
  return rows.length > 0
}

/** Moves what is stored of a repository to another name, unless something is stored under that name already. */
export async function moveRepository(
  sql: Sql,
  { organisationId, repository }: RepositoryRef,
  to: string,
): Promise<void> {
  await sql`
    with free as (
      select where not exists (
        select from github_touches where organisation_id = ${organisationId} and repository = ${to}
      ) and not exists (
        select from github_pull_requests where organisation_id = ${organisationId} and repository = ${to}
      )
    ), touches as (
      update github_touches set repository = ${to}
      where organisation_id = ${organisationId} and repository = ${repository} and exists (select from free)
    )
    update github_pull_requests
    set
      repository = ${to},
      head_repository = case head_repository when ${repository} then ${to} else head_repository end
    where organisation_id = ${organisationId} and repository = ${repository} and exists (select from free)`
}

/** The tables that are pruned, each with the column that the age of a row is measured by. */
const timeColumns = {
  github_deliveries: 'received_at',
  github_touches: 'pushed_at',
  github_pull_requests: 'closed_at',
}

/** Deletes a batch of rows from before a time, by ctid, which needs no join; returns how many there were. */
export async function deleteOld(
  sql: Sql,
  table: keyof typeof timeColumns,
  before: Date,
  batchSize: number,
): Promise<number> {
  const column = timeColumns[table]
  const rows = await sql.dynamic(
    `delete from ${table}
    where ctid = any(array(
      select ctid from ${table} where ${column} < $1::timestamptz
      order by ${column} limit ${batchSize} for update skip locked
    ))
    returning 1`,
    [before.toISOString()],
  )
  return rows.length
}
