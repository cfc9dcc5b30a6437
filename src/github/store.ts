import type { Sql } from '../db/client.ts'

/** A repository that delivers to an organisation. The id (repositoryIdOf) stays the same when the name changes. */
export type RepositoryRef = { organisationId: number; repositoryId: number }

export type Webhook = { org: string; organisationId: number; secret: string }

export async function findWebhook(sql: Sql, org: string): Promise<Webhook | undefined> {
  const [row] = await sql<Webhook>`
    select o.public_id as org, w.organisation_id as "organisationId", w.secret
    from organisations o
    join github_webhooks w on w.organisation_id = o.id
    where o.public_id = ${org}`
  return row
}

export async function upsertWebhook(sql: Sql, organisationId: number, secret: string, at: Date): Promise<void> {
  await sql`
    insert into github_webhooks (organisation_id, secret, created_at)
    values (${organisationId}, ${secret}, ${at})
    on conflict (organisation_id) do update set secret = excluded.secret, created_at = excluded.created_at`
}

/** Locks the repository until the end of the transaction. */
export async function lockRepository(sql: Sql, { organisationId, repositoryId }: RepositoryRef): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtext('github'), hashtext(${`${organisationId} ${repositoryId}`}))`
}

/** Returns false if the delivery was already recorded. */
export async function insertDelivery(sql: Sql, organisationId: number, delivery: string, at: Date): Promise<boolean> {
  const rows = await sql`
    insert into github_deliveries (organisation_id, delivery, received_at)
    values (${organisationId}, ${delivery}, ${at})
    on conflict do nothing
    returning 1`
  return rows.length > 0
}

/** The name of a repository, and the time of the latest delivery that brought it, by GitHub's clock. */
type RepositoryName = { name: string; seenAt: Date }

export async function selectRepository(sql: Sql, ref: RepositoryRef): Promise<RepositoryName | undefined> {
  const [row] = await sql<RepositoryName>`
    select name, seen_at as "seenAt" from github_repositories
    where organisation_id = ${ref.organisationId} and id = ${ref.repositoryId}`
  return row
}

/** Upserts the repository's name and removes it from any other repository. */
export async function upsertRepository(sql: Sql, ref: RepositoryRef, { name, seenAt }: RepositoryName): Promise<void> {
  await sql`
    delete from github_repositories
    where organisation_id = ${ref.organisationId} and name = ${name} and id <> ${ref.repositoryId}`
  await sql`
    insert into github_repositories (organisation_id, id, name, seen_at)
    values (${ref.organisationId}, ${ref.repositoryId}, ${name}, ${seenAt})
    on conflict (organisation_id, id) do update set name = excluded.name, seen_at = excluded.seen_at`
}
