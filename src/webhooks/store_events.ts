import type { Sql } from '../db/client.ts'
import type { Prompt } from '../prompts/find.ts'

type EventRow = { organisationId: number; type: string; once: string; promptId?: string; data: object; now: Date }

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
      insert into webhook_events (public_id, organisation_id, type, once, data, created_at)
      select
        ${id}, ${organisationId}, ${event.type}, ${event.once}, ${JSON.stringify(event.data)}::text::jsonb,
        ${event.now}::timestamptz
      where exists (select from wanted)
      on conflict (organisation_id, once) do nothing
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
