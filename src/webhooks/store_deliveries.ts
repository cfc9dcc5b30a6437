import type { Sql } from '../db/client.ts'
import type { WebhookEvent } from './events.ts'
import type { Outcome } from './outcome.ts'
import type { Reply } from './post.ts'
import type { Receiver } from './send.ts'
import type { Place } from './share.ts'

/** A delivery that is due, and its endpoint, claimed until then by this replica. Times are the database's. */
export type Claim = Place & {
  eventRowId: number
  attempts: number
  event: WebhookEvent
  receiver: Receiver
  endpointId: number
  endpoint: string
  org: string
  failingSince: Date | null
  claimedAt: Date
  claimedUntil: Date
}

/** An endpoint by its row id. */
type EndpointRef = Pick<Claim, 'organisationId' | 'endpointId'>

type ClaimRow = Omit<Claim, 'event'> & { event: Omit<WebhookEvent, 'timestamp'> & { timestamp: string } }

/** More endpoints than this are not offered together. */
const maxDue = 1_000

/**
 * The endpoints that have a delivery due and are not claimed: those first that do not fail, and of these the ones that were
 * served longest ago. Those of suspended organisations wait. The recursion visits the endpoints with pending deliveries,
 * however many each has.
 * Claims are shorter than a minute: one that ends later was made while the clock was ahead.
 */
export const selectDue = (sql: Sql, excluded: { organisations: number[]; failing: boolean }) =>
  sql<Place & { endpointId: number }>`
    with recursive pending as (
      (
        select d.organisation_id, d.endpoint_id
        from webhook_deliveries d
        where d.status = 'pending'
        order by d.organisation_id, d.endpoint_id
        limit 1
      )
      union all
      select next.organisation_id, next.endpoint_id
      from pending p
      cross join lateral (
        select d.organisation_id, d.endpoint_id
        from webhook_deliveries d
        where d.status = 'pending' and (d.organisation_id, d.endpoint_id) > (p.organisation_id, p.endpoint_id)
        order by d.organisation_id, d.endpoint_id
        limit 1
      ) next
    )
    select e.id as "endpointId", e.organisation_id as "organisationId", e.failing_since is not null as "isFailing"
    from pending p
    join webhook_endpoints e on e.organisation_id = p.organisation_id and e.id = p.endpoint_id
    join organisations o on o.id = e.organisation_id and o.suspended_at is null
    where e.disabled_at is null
      and (e.claimed_until > now() and e.claimed_until <= now() + interval '1 minute') is not true
      and not (e.failing_since is not null and ${excluded.failing}::boolean)
      and e.organisation_id <> all (${excluded.organisations.map(String)}::text[]::bigint[])
      and exists (
        select from webhook_deliveries d
        where d.organisation_id = e.organisation_id and d.endpoint_id = e.id and d.status = 'pending'
          and d.next_attempt_at <= now()
      )
    order by e.failing_since is not null, e.claimed_until nulls first
    limit ${maxDue}`

/**
 * Claims those of these endpoints that still are free, and returns the delivery of each that is due longest. One delivery per
 * endpoint is in flight, on all replicas together, so that one that hangs delays only its own.
 */
export async function claimDeliveries(sql: Sql, endpoints: EndpointRef[], claimMs: number): Promise<Claim[]> {
  const rows = await sql<ClaimRow>`
    with due as materialized (
      select e.organisation_id, e.id, d.event_id
      from unnest(
        ${endpoints.map(({ organisationId }) => String(organisationId))}::text[]::bigint[],
        ${endpoints.map(({ endpointId }) => String(endpointId))}::text[]::bigint[]
      ) given (organisation_id, id)
      join webhook_endpoints e on e.organisation_id = given.organisation_id and e.id = given.id
      cross join lateral (
        select d.event_id
        from webhook_deliveries d
        where d.organisation_id = e.organisation_id and d.endpoint_id = e.id and d.status = 'pending'
          and d.next_attempt_at <= now()
        order by d.next_attempt_at, d.event_id
        limit 1
      ) d
      where e.disabled_at is null
        and (e.claimed_until > now() and e.claimed_until <= now() + interval '1 minute') is not true
      for no key update of e skip locked
    ), claimed as (
      update webhook_endpoints e
      set claimed_until = now() + ${claimMs}::integer * interval '1 millisecond'
      from due
      where e.organisation_id = due.organisation_id and e.id = due.id
      returning e.*, due.event_id
    )
    select
      e.event_id as "eventRowId", d.attempts, e.id as "endpointId", e.public_id as endpoint,
      e.organisation_id as "organisationId", o.public_id as org, e.failing_since as "failingSince",
      e.failing_since is not null as "isFailing", now() as "claimedAt", e.claimed_until as "claimedUntil",
      json_build_object('id', v.public_id, 'type', v.type, 'timestamp', v.created_at, 'data', v.data) as event,
      json_build_object(
        'kind', e.kind, 'url', e.url,
        'secrets', array_remove(array[e.secret, case when e.old_secret_until > now() then e.old_secret end], null)
      ) as receiver
    from claimed e
    join organisations o on o.id = e.organisation_id
    join webhook_deliveries d
      on d.organisation_id = e.organisation_id and d.endpoint_id = e.id and d.event_id = e.event_id
    join webhook_events v on v.organisation_id = e.organisation_id and v.id = e.event_id`
  return rows.map(({ event, ...row }) => ({
    ...row,
    event: { ...event, timestamp: new Date(event.timestamp) } as WebhookEvent,
  }))
}

type Attempt = { claim: Claim; reply: Reply; outcome: Outcome; pauseMs: number }

/**
 * Records an attempt and releases the endpoint after a pause, unless another replica has claimed it. A delivery that was
 * restarted or erased meanwhile is left alone.
 */
export async function recordAttempt(sql: Sql, { claim, reply, outcome, pauseMs }: Attempt): Promise<void> {
  await sql`
    with endpoint as (
      update webhook_endpoints
      set
        claimed_until = now() + ${pauseMs}::integer * interval '1 millisecond',
        failing_since = case when ${outcome.status} <> 'delivered' then coalesce(failing_since, ${claim.claimedAt}) end
      where organisation_id = ${claim.organisationId} and id = ${claim.endpointId}
        and claimed_until = ${claim.claimedUntil}
      returning organisation_id, id
    )
    update webhook_deliveries d
    set
      status = ${outcome.status}, attempts = d.attempts + 1,
      next_attempt_at = now() + ${outcome.retryMs}::integer * interval '1 millisecond',
      last_attempt_at = ${claim.claimedAt}, response_code = ${reply.code}, response_text = ${reply.text}
    from endpoint e
    where d.organisation_id = e.organisation_id and d.endpoint_id = e.id and d.event_id = ${claim.eventRowId}
      and d.status = 'pending' and d.attempts = ${claim.attempts}`
}

/**
 * Disables a claimed endpoint. Returns false, and changes nothing, when another replica has claimed it, or when somebody
 * disabled or enabled it meanwhile. To enable it forgets its failures.
 */
export async function disableEndpoint(sql: Sql, claim: Claim, reason: string): Promise<boolean> {
  const rows = await sql`
    update webhook_endpoints
    set disabled_at = now(), disabled_reason = ${reason}
    where organisation_id = ${claim.organisationId} and id = ${claim.endpointId}
      and claimed_until = ${claim.claimedUntil} and failing_since is not distinct from ${claim.failingSince}
      and disabled_at is null
    returning 1`
  return rows.length > 0
}

/** Releases an endpoint whose attempt was not made. */
export async function releaseEndpoint(sql: Sql, { organisationId, endpointId, claimedUntil }: Claim): Promise<void> {
  await sql`
    update webhook_endpoints set claimed_until = null
    where organisation_id = ${organisationId} and id = ${endpointId} and claimed_until = ${claimedUntil}`
}

/** When the oldest event happened that an endpoint should have been sent, and how many endpoints the service disabled. */
export async function selectBacklog(sql: Sql): Promise<{ oldest: Date | null; disabled: number }> {
  const [row] = await sql<{ oldest: Date | null; disabled: number }>`
    select
      (
        select v.created_at
        from (
          select d.organisation_id, d.event_id
          from webhook_deliveries d
          join webhook_endpoints e on e.organisation_id = d.organisation_id and e.id = d.endpoint_id
          join organisations o on o.id = d.organisation_id and o.suspended_at is null
          where d.status = 'pending' and e.disabled_at is null
          order by d.event_id
          limit 1
        ) first
        join webhook_events v on v.organisation_id = first.organisation_id and v.id = first.event_id
      ) as oldest,
      (select count(*)::integer from webhook_endpoints where disabled_reason in ('gone', 'failing')) as disabled`
  return row as { oldest: Date | null; disabled: number }
}
