import type { Sql } from '../db/client.ts'
import type { DeliveryOutcome } from './schema.ts'

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
    on conflict (organisation_id) do update set secret = excluded.secret, created_at = excluded.created_at,
      last_delivery_at = null, last_event = null, last_outcome = null`
}

type LastDelivery = { at: Date; event: string; outcome: DeliveryOutcome }

/** Keeps the newest delivery: they arrive concurrently. */
export async function updateLastDelivery(sql: Sql, organisationId: number, last: LastDelivery): Promise<void> {
  await sql`
    update github_webhooks
    set last_delivery_at = ${last.at}, last_event = ${last.event}, last_outcome = ${last.outcome}
    where organisation_id = ${organisationId} and coalesce(last_delivery_at, '-infinity') <= ${last.at}`
}

type WebhookState = { createdAt: Date } & Partial<LastDelivery>

export async function selectWebhookState(sql: Sql, organisationId: number): Promise<WebhookState | undefined> {
  const [row] = await sql<WebhookState>`
    select created_at as "createdAt", last_delivery_at as at, last_event as event, last_outcome as outcome
    from github_webhooks
    where organisation_id = ${organisationId}`
  return row
}

/** Locks the repository until the end of the transaction. */
export async function lockRepository(sql: Sql, { organisationId, repositoryId }: RepositoryRef): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtext('github'), hashtext(${`${organisationId} ${repositoryId}`}))`
}

/** The signature is a hash of the body. */
export type DeliveryKey = { id: string; signature: string }

/** Returns false if the delivery, or one with the same body, was already recorded. */
export async function insertDelivery(sql: Sql, organisationId: number, { id, signature }: DeliveryKey, at: Date) {
  const rows = await sql`
    insert into github_deliveries (organisation_id, delivery, signature, received_at)
    values (${organisationId}, ${id}, ${signature}, ${at})
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
