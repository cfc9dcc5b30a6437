// Events, and what was told before: the thresholds of a month, and the verdicts of changes.
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

/** Whether an enabled endpoint waits for a row of `webhook_events`. */
export const isAwaited = `exists (
  select from webhook_deliveries d
  join webhook_endpoints e on e.organisation_id = d.organisation_id and e.id = d.endpoint_id
  where d.organisation_id = webhook_events.organisation_id and d.event_id = webhook_events.id and d.status = 'pending'
    and e.disabled_at is null
)`

/** In percent of the monthly limit, ascending. */
export const thresholds = [80, 100] as const

export type UsedMonth = { organisationId: number; id: string; name: string; used: number; limit: number }

/** The organisations that want to know, have reached a threshold, and were not told. */
export const selectUntold = (sql: Sql, month: string) =>
  sql<UsedMonth>`
    select o.id as "organisationId", o.public_id as id, o.name, u.used, u.monthly_limit as limit
    from (
      select distinct e.organisation_id as id
      from webhook_endpoints e
      where e.disabled_at is null and (e.events is null or 'usage.threshold' = any (e.events))
    ) e
    join organisations o on o.id = e.id
    cross join lateral usages_of(array[o.id], array[${month}::text::date]) u
    where u.monthly_limit > 0
      and exists (
        select from unnest(${thresholds.map(String)}::text[]::integer[]) reached (percent)
        where u.used * 100::bigint >= u.monthly_limit * reached.percent::bigint
          and not exists (
            select from told_thresholds t
            where t.organisation_id = o.id and t.month = ${month}::text::date and t.threshold = reached.percent
          )
      )`

/** Returns false if the organisation was told before. */
export async function insertTold(sql: Sql, organisationId: number, month: string, threshold: number): Promise<boolean> {
  const rows = await sql`
    insert into told_thresholds (organisation_id, month, threshold)
    values (${organisationId}, ${month}::text::date, ${threshold})
    on conflict do nothing
    returning 1`
  return rows.length > 0
}

/**
 * An organisation with an enabled endpoint that wants verdicts. `state` changes with these endpoints and with every recorded
 * signal, but not with imported ones of past months, which count towards no limit.
 */
export type WatchedOrganisation = { id: number; state: string }

export const selectWatched = (sql: Sql) =>
  sql<WatchedOrganisation>`
    select
      e.organisation_id as id,
      concat(
        md5(json_agg(json_build_array(e.id, e.prompts) order by e.id)::text), ' ',
        (select sum(u.used) from signal_usage u where u.organisation_id = e.organisation_id)
      ) as state
    from webhook_endpoints e
    where e.disabled_at is null and (e.events is null or 'impact.decided' = any (e.events))
    group by e.organisation_id
    order by e.organisation_id`

/**
 * Takes or renews the lease, for `seconds`. Returns false while another holder has it. Leases are shorter than a minute: one
 * that ends later was taken while the clock was ahead.
 */
export async function holdLease(sql: Sql, holder: string, seconds: number): Promise<boolean> {
  const rows = await sql`
    insert into verdict_lease as l (holder, ends_at)
    values (${holder}, now() + make_interval(secs => ${seconds}::integer))
    on conflict (is_only) do update
    set holder = excluded.holder, ends_at = excluded.ends_at
    where l.holder = excluded.holder or (l.ends_at between now() and now() + interval '1 minute') is not true
    returning 1`
  return rows.length > 0
}

export async function releaseLease(sql: Sql, holder: string): Promise<void> {
  await sql`delete from verdict_lease where holder = ${holder}`
}

/**
 * A prompt with signals that were not looked at. If some of them are older than its first endpoint, `createdAfterSignal` is
 * the last signal before that endpoint; else it is null.
 */
export type PromptToLookAt = {
  id: number
  publicId: string
  name: string
  newestSignal: number
  createdAfterSignal: number | null
}

/** Those of these prompts that are not archived, that an enabled endpoint wants the verdicts of, and that have new signals. */
export const selectPromptsToLookAt = (sql: Sql, organisationId: number, promptIds: number[]) =>
  sql<PromptToLookAt>`
    select
      p.id, p.public_id as "publicId", p.name, newest.id as "newestSignal",
      case when exists (
        select from signals s
        where s.organisation_id = p.organisation_id and s.prompt_id = p.id
          and s.id > coalesce(look.signal_id, 0) and s.id <= wanted.created_after_signal
      ) then wanted.created_after_signal end as "createdAfterSignal"
    from unnest(${promptIds.map(String)}::text[]::bigint[]) given (id)
    join prompts p on p.id = given.id and p.organisation_id = ${organisationId} and not p.archived
    cross join lateral (
      select s.id
      from signals s
      where s.organisation_id = p.organisation_id and s.prompt_id = p.id
      order by s.prompt_id desc, s.id desc
      limit 1
    ) newest
    left join verdict_looks look on look.organisation_id = p.organisation_id and look.prompt_id = p.id
    cross join lateral (
      select min(e.created_after_signal) as created_after_signal
      from webhook_endpoints e
      where e.organisation_id = p.organisation_id and e.disabled_at is null
        and (e.events is null or 'impact.decided' = any (e.events))
        and (e.prompts is null or p.public_id = any (e.prompts))
    ) wanted
    where newest.id > coalesce(look.signal_id, 0) and wanted.created_after_signal is not null
    order by p.id`

/** Whether the prompt has at least `number` signals after this one. */
export async function hasSignalsAfter(
  sql: Sql,
  organisationId: number,
  { id }: PromptToLookAt,
  signalId: number,
  number: number,
): Promise<boolean> {
  const rows = await sql`
    select from signals s
    where s.organisation_id = ${organisationId} and s.prompt_id = ${id} and s.id > ${signalId}
    order by s.prompt_id, s.id
    offset ${number - 1} limit 1`
  return rows.length > 0
}

type Decided = { entryId: number; verdict: string }

export const selectDecided = (sql: Sql, organisationId: number, entryIds: number[]) =>
  sql<Decided>`
    select d.entry_id as "entryId", d.verdict
    from decided_verdicts d
    where d.organisation_id = ${organisationId} and d.entry_id = any(${entryIds.map(String)}::text[]::bigint[])`

/** Returns false if the change has had the verdict before, or was removed. */
export async function insertDecided(
  sql: Sql,
  organisationId: number,
  { entryId, verdict }: Decided,
  now: Date,
): Promise<boolean> {
  const rows = await sql`
    insert into decided_verdicts (organisation_id, entry_id, verdict, decided_at)
    select h.organisation_id, h.id, ${verdict}, ${now}::timestamptz
    from history_entries h
    where h.organisation_id = ${organisationId} and h.id = ${String(entryId)}::text::bigint
    on conflict do nothing
    returning 1`
  return rows.length > 0
}

export async function recordLooks(sql: Sql, organisationId: number, prompts: PromptToLookAt[]): Promise<void> {
  await sql`
    insert into verdict_looks as l (organisation_id, prompt_id, signal_id)
    select ${organisationId}, looked.*
    from unnest(
      ${prompts.map(({ id }) => String(id))}::text[]::bigint[],
      ${prompts.map(({ newestSignal }) => String(newestSignal))}::text[]::bigint[]
    ) looked
    on conflict (organisation_id, prompt_id) do update
    set signal_id = excluded.signal_id
    where l.signal_id < excluded.signal_id`
}
