import type { Sql } from '../db/client.ts'
import type { DeliveryRow, EndpointKind, EndpointRow } from './schema.ts'
import type { Receiver } from './send.ts'

/** What a change can set. The URL is whole. */
export type EndpointValues = Pick<
  EndpointRow,
  'events' | 'prompts' | 'disabled_at' | 'disabled_reason' | 'failing_since_at'
> & { kind: EndpointKind; fullUrl: string }

export type StoredEndpoint = EndpointValues &
  Pick<EndpointRow, 'id' | 'old_secret_ends_at' | 'created_at'> & { rowId: number; organisationId: number }

type EndpointRef = Pick<StoredEndpoint, 'rowId' | 'organisationId'>

/** Serialises the creation of an organisation's endpoints, so that their number is exact. */
export async function lockEndpoints(sql: Sql, organisationId: number): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtext('webhook endpoints'), hashtext(${String(organisationId)}))`
}

export async function insertEndpoint(
  sql: Sql,
  endpoint: EndpointValues & { id: string; organisationId: number; secret: string; created_at: Date },
): Promise<void> {
  await sql`
    insert into webhook_endpoints (
      public_id, organisation_id, kind, url, events, prompts, secret, created_at, disabled_at, disabled_reason
    )
    values (
      ${endpoint.id}, ${endpoint.organisationId}, ${endpoint.kind}, ${endpoint.fullUrl}, ${endpoint.events}::text[],
      ${endpoint.prompts}::text[], ${endpoint.secret}, ${endpoint.created_at}, ${endpoint.disabled_at},
      ${endpoint.disabled_reason}
    )`
}

export const selectEndpoints = (sql: Sql, organisationId: number, beforeId: number, limit: number) =>
  sql<StoredEndpoint>`
    select
      e.id as "rowId", e.public_id as id, organisation_id as "organisationId", kind, url as "fullUrl",
      to_json(events) as events, to_json(prompts) as prompts, disabled_at, disabled_reason, failing_since_at,
      old_secret_ends_at, created_at
    from webhook_endpoints e
    where e.organisation_id = ${organisationId} and e.id < ${beforeId}
    order by e.id desc
    limit ${limit}`

/** Finds an endpoint, with the secrets that sign now. */
export async function findEndpoint(sql: Sql, id: string) {
  const [row] = await sql<StoredEndpoint & Pick<Receiver, 'secrets'>>`
    select
      id as "rowId", public_id as id, organisation_id as "organisationId", kind, url as "fullUrl",
      to_json(events) as events, to_json(prompts) as prompts, disabled_at, disabled_reason, failing_since_at,
      old_secret_ends_at, created_at,
      to_json(secret || case when old_secret_ends_at > now() then old_secrets else '{}' end) as secrets
    from webhook_endpoints
    where public_id = ${id}`
  return row
}

/** Lets events still be written for the endpoint meanwhile. */
export async function lockEndpoint(sql: Sql, id: string): Promise<void> {
  await sql`select from webhook_endpoints where public_id = ${id} for no key update`
}

export async function updateEndpoint(sql: Sql, id: string, endpoint: EndpointValues): Promise<void> {
  await sql`
    update webhook_endpoints
    set
      kind = ${endpoint.kind}, url = ${endpoint.fullUrl}, events = ${endpoint.events}::text[],
      prompts = ${endpoint.prompts}::text[], disabled_at = ${endpoint.disabled_at},
      disabled_reason = ${endpoint.disabled_reason}, failing_since_at = ${endpoint.failing_since_at}
    where public_id = ${id}`
}

/**
 * The secrets that sign so far do so until then, beside the new one; with null they are forgotten. A receiver may have any
 * of the last ones: the answer to a rotation may have been lost.
 */
export async function replaceSecret(sql: Sql, id: string, secret: string, oldEndsAt: Date | null): Promise<void> {
  await sql`
    update webhook_endpoints
    set
      secret = ${secret}, old_secret_ends_at = ${oldEndsAt},
      old_secrets = case
        when ${oldEndsAt}::timestamptz is null then '{}'
        when old_secret_ends_at > now() then (secret || old_secrets)[:${maxOldSecrets}]
        else array[secret]
      end
    where public_id = ${id}`
}

const maxOldSecrets = 4

/** Makes the pending deliveries of an endpoint due. */
export async function sendPending(sql: Sql, { rowId, organisationId }: EndpointRef): Promise<void> {
  await sql`
    update webhook_deliveries set next_attempt_at = now()
    where organisation_id = ${organisationId} and endpoint_id = ${rowId} and status = 'pending'`
}

export async function deleteEndpoint(sql: Sql, id: string): Promise<void> {
  await sql`delete from webhook_endpoints where public_id = ${id}`
}

export const selectDeliveries = (
  sql: Sql,
  { rowId, organisationId }: EndpointRef,
  beforeEvent: number,
  limit: number,
) =>
  sql<DeliveryRow & { rowId: number }>`
    select
      d.event_id as "rowId", v.public_id as id, v.type, v.created_at, d.status, d.attempts, d.last_attempt_at,
      d.next_attempt_at, d.response_code, d.response_text
    from webhook_deliveries d
    join webhook_events v on v.organisation_id = d.organisation_id and v.id = d.event_id
    where d.organisation_id = ${organisationId} and d.endpoint_id = ${rowId} and d.event_id < ${beforeEvent}
    order by d.event_id desc
    limit ${limit}`

/** Makes a delivery due, with the attempts of a new one. Its last response stays until the next. */
export async function restartDelivery(sql: Sql, { rowId, organisationId }: EndpointRef, event: string) {
  const [row] = await sql<DeliveryRow>`
    update webhook_deliveries d
    set status = 'pending', attempts = 0, next_attempt_at = now()
    from webhook_events v
    where d.organisation_id = ${organisationId} and d.endpoint_id = ${rowId}
      and v.organisation_id = d.organisation_id and v.id = d.event_id and v.public_id = ${event}
    returning
      v.public_id as id, v.type, v.created_at, d.status, d.attempts, d.last_attempt_at, d.next_attempt_at,
      d.response_code, d.response_text`
  return row
}
