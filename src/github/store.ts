import type { Sql } from '../db/client.ts'

/** A repository that delivers to an organisation, by GitHub's id of it, which outlives every name. */
export type RepositoryRef = { organisationId: number; repositoryId: number }

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
export async function lockRepository(sql: Sql, { organisationId, repositoryId }: RepositoryRef): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtext('github'), hashtext(${`${organisationId} ${repositoryId}`}))`
}

/** Locks the known repositories of an owner in the same way, in the order of their ids. */
export async function lockRepositoriesOf(sql: Sql, organisationId: number, owner: string): Promise<void> {
  await sql`
    select pg_advisory_xact_lock(hashtext('github'), hashtext(organisation_id || ' ' || id))
    from (
      select organisation_id, id from github_repositories
      where organisation_id = ${organisationId} and starts_with(name, ${`${owner}/`})
      order by id
    ) r`
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

type KnownRepository = { name: string; seenAt: Date }

export async function selectRepository(
  sql: Sql,
  { organisationId, repositoryId }: RepositoryRef,
): Promise<KnownRepository | undefined> {
  const [row] = await sql<KnownRepository>`
    select name, seen_at as "seenAt" from github_repositories
    where organisation_id = ${organisationId} and id = ${repositoryId}`
  return row
}

/** Stores the name that a repository bears now; one that bore it before has lost it. */
export async function upsertRepository(
  sql: Sql,
  { organisationId, repositoryId }: RepositoryRef,
  { name, seenAt }: KnownRepository,
): Promise<void> {
  await sql`
    delete from github_repositories
    where organisation_id = ${organisationId} and name = ${name} and id <> ${repositoryId}`
  await sql`
    insert into github_repositories (organisation_id, id, name, seen_at)
    values (${organisationId}, ${repositoryId}, ${name}, ${seenAt})
    on conflict (organisation_id, id) do update set name = excluded.name, seen_at = excluded.seen_at`
}

/** Gives the repositories of an owner the names that they bear under another; those that bore them before have lost them. */
export async function renameRepositories(
  sql: Sql,
  organisationId: number,
  from: string,
  to: string,
  seenAt: Date,
): Promise<void> {
  await sql`
    delete from github_repositories lost
    using github_repositories r
    where r.organisation_id = ${organisationId} and starts_with(r.name, ${`${from}/`})
      and lost.organisation_id = r.organisation_id and lost.name = ${to}::text || substr(r.name, length(${from}::text) + 1)`
  await sql`
    update github_repositories
    set name = ${to}::text || substr(name, length(${from}::text) + 1), seen_at = greatest(seen_at, ${seenAt})
    where organisation_id = ${organisationId} and starts_with(name, ${`${from}/`})`
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
