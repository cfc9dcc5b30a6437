import type { Sql } from '../db/client.ts'
import type { EventOutcome } from './schema.ts'

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
      last_event_at = null, last_event = null, last_outcome = null`
}

type LastEvent = { at: Date; event: string; outcome: EventOutcome }

/** Keeps the newest event, because they arrive concurrently. */
export async function updateLastEvent(sql: Sql, organisationId: number, last: LastEvent): Promise<void> {
  await sql`
    update github_webhooks
    set last_event_at = ${last.at}, last_event = ${last.event}, last_outcome = ${last.outcome}
    where organisation_id = ${organisationId} and coalesce(last_event_at, '-infinity') <= ${last.at}`
}

type WebhookState = { createdAt: Date } & Partial<LastEvent>

export async function selectWebhookState(sql: Sql, organisationId: number): Promise<WebhookState | undefined> {
  const [row] = await sql<WebhookState>`
    select created_at as "createdAt", last_event_at as at, last_event as event, last_outcome as outcome
    from github_webhooks
    where organisation_id = ${organisationId}`
  return row
}
