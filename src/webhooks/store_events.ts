// Events, and the queue of their deliveries.
import type { Sql } from '../db/client.ts'
import type { Prompt } from '../prompts/find.ts'
import type { WebhookEvent } from './message.ts'
import type { Receiver, Reply } from './send.ts'

type EventRow = { organisationId: number; type: string; dedupKey: string; promptId?: string; data: object; now: Date }

/** Locks the endpoints against deletion, which would otherwise fail the caller's transaction. */
export async function insertEvent(sql: Sql, id: string, { organisationId, promptId, ...event }: EventRow) {
  await sql`
    with wanted as materialized (
      select e.id
      from webhook_endpoints e
      where e.organisation_id = ${organisationId} and e.disabled_at is null
        and (e.events is null or ${event.type}::text = any (e.events))
        and (e.prompts is null or ${promptId ?? null}::text is null or ${promptId ?? null}::text = any (e.prompts))
      for key share
    ), event as (
      insert into webhook_events (public_id, organisation_id, type, dedup_key, data, created_at)
      select
        ${id}, ${organisationId}, ${event.type}, ${event.dedupKey}, ${JSON.stringify(event.data)}::text::jsonb,
        ${event.now}::timestamptz
      where exists (select from wanted)
      on conflict (organisation_id, dedup_key) do nothing
      returning id
    )
    insert into webhook_deliveries (organisation_id, endpoint_id, event_id, next_attempt_at)
    select ${organisationId}, w.id, v.id, now()
    from wanted w
    cross join event v`
}

/** Deletes the events about a prompt that is erased, also those that are still to be delivered. */
export async function deleteEventsAbout(sql: Sql, { organisationId, publicId }: Prompt): Promise<void> {
  await sql`
    delete from webhook_events where organisation_id = ${organisationId} and data #>> '{prompt,id}' = ${publicId}`
}

/** A delivery that this replica sends: nobody else does until the lease ends. Times are the database's. */
export type Lease = {
  organisationId: number
  endpointId: number
  eventId: number
  /** Public ids, for the audit log and the log. */
  org: string
  endpoint: string
  attempts: number
  failingSince: Date | null
  event: WebhookEvent
  receiver: Receiver
  sentAt: Date
  leasedUntil: Date
}

type LeaseRow = Omit<Lease, 'event'> & { event: Omit<WebhookEvent, 'timestamp'> & { timestamp: string } }

type LeaseRequest = { isFailing: boolean; busyEndpoints: number[]; limit: number; leaseMs: number }

/**
 * Leases the next delivery of each of `limit` endpoints that have one due and are not busy. Who was sent to longest ago
 * comes first. What another replica is leasing is skipped. Events of suspended organisations wait.
 */
export async function leaseDeliveries(sql: Sql, { isFailing, busyEndpoints, limit, leaseMs }: LeaseRequest) {
  const rows = await sql<LeaseRow>`
    with due as (
      select
        d.organisation_id as "organisationId", d.endpoint_id as "endpointId", d.event_id as "eventId",
        o.public_id as org, e.public_id as endpoint, d.attempts, e.failing_since_at as "failingSince",
        json_build_object('id', v.public_id, 'type', v.type, 'timestamp', v.created_at, 'data', v.data) as event,
        json_build_object(
          'kind', e.kind, 'url', e.url,
          'secrets', e.secret || case when e.old_secret_ends_at > now() then e.old_secrets else '{}' end
        ) as receiver,
        now()::timestamptz(3) as "sentAt",
        (now() + ${leaseMs}::integer * interval '1 millisecond')::timestamptz(3) as "leasedUntil"
      from webhook_endpoints e
      join organisations o on o.id = e.organisation_id and o.suspended_at is null
      cross join lateral (
        select n.event_id
        from webhook_deliveries n
        where n.organisation_id = e.organisation_id and n.endpoint_id = e.id and n.status = 'pending'
          and n.next_attempt_at <= now()
        order by n.next_attempt_at
        limit 1
      ) next
      join webhook_deliveries d
        on d.organisation_id = e.organisation_id and d.endpoint_id = e.id and d.event_id = next.event_id
      join webhook_events v on v.organisation_id = d.organisation_id and v.id = d.event_id
      where e.disabled_at is null and (e.failing_since_at is not null) = ${isFailing}::boolean
        and e.id <> all (${busyEndpoints.map(String)}::text[]::bigint[])
        -- A chat gets a message a second, and so does an endpoint that fails: others wait for its backlog otherwise.
        and (
          e.kind <> 'slack' and e.failing_since_at is null
          or e.last_sent_at is null or e.last_sent_at <= now() - interval '1 second'
        )
        -- Holds no longer if another replica was faster.
        and d.status = 'pending' and d.next_attempt_at <= now()
      order by e.last_sent_at nulls first
      limit ${limit}
      for no key update of d, e skip locked
    ), leased as (
      update webhook_deliveries d
      set next_attempt_at = due."leasedUntil"
      from due
      where d.organisation_id = due."organisationId" and d.endpoint_id = due."endpointId" and d.event_id = due."eventId"
    ), sent_to as (
      update webhook_endpoints e
      set last_sent_at = due."sentAt"
      from due
      where e.organisation_id = due."organisationId" and e.id = due."endpointId"
    )
    select * from due`
  return rows.map(({ event, ...row }): Lease => {
    return { ...row, event: { ...event, timestamp: new Date(event.timestamp) } as WebhookEvent }
  })
}

/** What follows from an attempt. */
export type Outcome = {
  status: 'delivered' | 'pending' | 'failed'
  /** How long to wait before the next attempt; null when nothing more is sent. */
  retryMs: number | null
  /** Why the endpoint is to be disabled, or null. */
  disabledReason: 'gone' | 'failing' | null
}

/**
 * Records an attempt. Returns false if the delivery is no longer this lease's: it was sent again or erased, or the endpoint
 * has another URL.
 */
export async function recordAttempt(sql: Sql, lease: Lease, reply: Reply, outcome: Outcome): Promise<boolean> {
  const rows = await sql`
    with endpoint as materialized (
      select e.organisation_id, e.id
      from webhook_endpoints e
      where e.organisation_id = ${lease.organisationId} and e.id = ${lease.endpointId} and e.url = ${lease.receiver.url}
      for no key update
    ), delivery as (
      update webhook_deliveries d
      set
        status = ${outcome.status}, attempts = d.attempts + 1,
        next_attempt_at = now() + ${outcome.retryMs}::integer * interval '1 millisecond',
        last_attempt_at = ${lease.sentAt}, response_code = ${reply.code}, response_text = ${reply.text}
      from endpoint e
      where d.organisation_id = e.organisation_id and d.endpoint_id = e.id and d.event_id = ${lease.eventId}
        and d.next_attempt_at = ${lease.leasedUntil}
      returning d.organisation_id, d.endpoint_id
    )
    update webhook_endpoints e
    set
      last_sent_at = now(),
      failing_since_at = case when ${outcome.status} <> 'delivered' then coalesce(failing_since_at, ${lease.sentAt}) end
    from delivery d
    where e.organisation_id = d.organisation_id and e.id = d.endpoint_id
    returning 1`
  return rows.length > 0
}

/** Makes a delivery due whose attempt was not recorded, if it is still leased. */
export async function endLease(sql: Sql, { organisationId, endpointId, eventId, leasedUntil }: Lease): Promise<void> {
  await sql`
    update webhook_deliveries set next_attempt_at = now()
    where organisation_id = ${organisationId} and endpoint_id = ${endpointId} and event_id = ${eventId}
      and next_attempt_at = ${leasedUntil}`
}

/**
 * Disables an endpoint. Returns false, and changes nothing, if during the attempt somebody changed its URL, or disabled or
 * enabled it, which clears its failures.
 */
export async function disableEndpoint(sql: Sql, lease: Lease, reason: string): Promise<boolean> {
  const rows = await sql`
    update webhook_endpoints
    set disabled_at = now(), disabled_reason = ${reason}
    where organisation_id = ${lease.organisationId} and id = ${lease.endpointId} and url = ${lease.receiver.url}
      and failing_since_at is not distinct from ${lease.failingSince} and disabled_at is null
    returning 1`
  return rows.length > 0
}

/**
 * Fails up to `limit` due deliveries of endpoints for which more than `kept` are pending, oldest first. Returns their number.
 * Those that wait for a retry stay, because their attempts end.
 */
export async function failBacklogs(sql: Sql, kept: number, limit: number): Promise<number> {
  const rows = await sql`
    with excess as (
      select d.organisation_id, d.endpoint_id, d.event_id
      from webhook_endpoints e
      cross join lateral (
        select n.event_id
        from webhook_deliveries n
        where n.organisation_id = e.organisation_id and n.endpoint_id = e.id and n.status = 'pending'
        order by n.event_id desc
        limit 1 offset ${kept}
      ) newest
      join webhook_deliveries d
        on d.organisation_id = e.organisation_id and d.endpoint_id = e.id and d.event_id <= newest.event_id
      where d.status = 'pending' and d.next_attempt_at <= now()
      order by d.event_id
      limit ${limit}
      for no key update of d skip locked
    )
    update webhook_deliveries d
    set status = 'failed', next_attempt_at = null, response_text = ${`More than ${kept} newer events are pending.`}
    from excess x
    where d.organisation_id = x.organisation_id and d.endpoint_id = x.endpoint_id and d.event_id = x.event_id
    returning 1`
  return rows.length
}

type Backlog = { oldest: Date | null; disabled: number }

/** When the oldest event happened that an endpoint should have been sent, and how many endpoints the service disabled. */
export async function selectBacklog(sql: Sql): Promise<Backlog> {
  const [row] = await sql<Backlog>`
    select
      (
        select min(v.created_at)
        from webhook_endpoints e
        join organisations o on o.id = e.organisation_id and o.suspended_at is null
        cross join lateral (
          select d.event_id
          from webhook_deliveries d
          where d.organisation_id = e.organisation_id and d.endpoint_id = e.id and d.status = 'pending'
          order by d.event_id
          limit 1
        ) first
        join webhook_events v on v.organisation_id = e.organisation_id and v.id = first.event_id
        where e.disabled_at is null
      ) as oldest,
      (select count(*)::integer from webhook_endpoints where disabled_reason in ('gone', 'failing')) as disabled`
  return row as Backlog
}
