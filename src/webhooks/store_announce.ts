// What announcements are made of: the usage of a month, and the verdicts of changes.
import type { Sql } from '../db/client.ts'

type MonthlyUsage = {
  organisationId: number
  id: string
  name: string
  used: number
  limit: number
  /** Those of the given keys that the organisation has events of. */
  announced: string[]
}

/** What organisations have used of the month, if an endpoint wants to know. */
export const selectMonthlyUsages = (sql: Sql, month: string, dedupKeys: string[]) =>
  sql<MonthlyUsage>`
    select
      o.id as "organisationId", o.public_id as id, o.name, u.used, u.monthly_limit as limit,
      to_json(array(
        select v.dedup_key from webhook_events v
        where v.organisation_id = o.id and v.dedup_key = any (${dedupKeys}::text[])
      )) as announced
    from organisations o
    cross join lateral usages_of(array[o.id], array[${month}::text::date]) u
    where exists (
      select from webhook_endpoints e
      where e.organisation_id = o.id and e.disabled_at is null
        and (e.events is null or 'usage.threshold' = any (e.events))
    )`

/**
 * The organisations with an enabled endpoint that wants verdicts or changed rates. `version` changes with these endpoints, with a new
 * prompt, and with every recorded signal, but not with imported ones of past months, which count towards no limit.
 */
export const selectWatchedOrganisations = (sql: Sql) =>
  sql<{ id: number; version: string }>`
    select
      e.organisation_id as id,
      concat(
        md5(json_agg(json_build_array(e.id, e.prompts) order by e.id)::text), ' ',
        (select max(p.id) from prompts p where p.organisation_id = e.organisation_id), ' ',
        (select sum(u.used) from signal_usage u where u.organisation_id = e.organisation_id)
      ) as version
    from webhook_endpoints e
    where e.disabled_at is null and (e.events is null or e.events && '{impact.decided,rate.changed}')
    group by e.organisation_id`

/**
 * `checkedSignal` is the newest signal at the last check, 0 if there is no signal. `rateDueAt` is when the rate is next
 * checked. Both are null before the first check.
 */
export type WatchedPrompt = {
  id: number
  publicId: string
  name: string
  isWatched: boolean
  newestSignal: number
  checkedSignal: number | null
  rateDueAt: Date | null
}

/** The next prompts of an organisation by id. Watched are those that an endpoint wants the verdicts of. */
export const selectNextPrompts = (sql: Sql, organisationId: number, afterId: number, limit: number) =>
  sql<WatchedPrompt>`
    select
      p.id, p.public_id as "publicId", p.name, c.last_signal_id as "checkedSignal", c.rate_due_at as "rateDueAt",
      not p.archived and exists (
        select from webhook_endpoints e
        where e.organisation_id = p.organisation_id and e.disabled_at is null
          and (e.events is null or e.events && '{impact.decided,rate.changed}')
          and (e.prompts is null or p.public_id = any (e.prompts))
      ) as "isWatched",
      coalesce((
        select s.id from signals s
        where s.organisation_id = p.organisation_id and s.prompt_id = p.id
        order by s.prompt_id desc, s.id desc
        limit 1
      ), 0) as "newestSignal"
    from (
      select * from prompts
      where organisation_id = ${organisationId} and id > ${afterId}
      order by id
      limit ${limit}
    ) p
    left join checked_prompts c on c.organisation_id = p.organisation_id and c.prompt_id = p.id
    order by p.id`

/** Whether this transaction is the only one on all replicas that checks verdicts. */
export async function lockVerdicts(sql: Sql): Promise<boolean> {
  const [row] = await sql<{ isOnly: boolean }>`select pg_try_advisory_xact_lock(5168, 1) as "isOnly"`
  return row?.isOnly ?? false
}

type DecidedVerdict = { entryId: number; verdict: string }

/** Returns the verdicts that their changes have not had before. Leaves out those of removed entries. */
export const insertDecidedVerdicts = (sql: Sql, organisationId: number, decided: DecidedVerdict[], now: Date) =>
  sql<DecidedVerdict>`
    insert into decided_verdicts (organisation_id, entry_id, verdict, decided_at)
    select h.organisation_id, h.id, g.verdict, ${now}::timestamptz
    from unnest(
      ${decided.map(({ entryId }) => String(entryId))}::text[]::bigint[], ${decided.map(({ verdict }) => verdict)}::text[]
    ) g (id, verdict)
    join history_entries h on h.organisation_id = ${organisationId} and h.id = g.id
    on conflict do nothing
    returning entry_id as "entryId", verdict`

/**
 * Returns the ids of the prompts that were checked for the first time, on any replica. Their rates are first due at
 * `firstRateDueAt`, those of the others not earlier than another replica has set.
 */
export async function recordChecks(
  sql: Sql,
  organisationId: number,
  prompts: WatchedPrompt[],
  firstRateDueAt: Date,
): Promise<number[]> {
  const rows = await sql<{ id: number }>`
    with checked as (
      select g.*
      from unnest(
        ${prompts.map(({ id }) => String(id))}::text[]::bigint[],
        ${prompts.map(({ newestSignal }) => String(newestSignal))}::text[]::bigint[],
        ${prompts.map(({ rateDueAt }) => rateDueAt?.toISOString() ?? '-infinity')}::text[]::timestamptz[]
      ) g (prompt_id, last_signal_id, rate_due_at)
    ), again as (
      update checked_prompts c
      set
        last_signal_id = greatest(c.last_signal_id, g.last_signal_id),
        rate_due_at = greatest(c.rate_due_at, g.rate_due_at)
      from checked g
      where c.organisation_id = ${organisationId} and c.prompt_id = g.prompt_id
        and (c.last_signal_id < g.last_signal_id or c.rate_due_at < g.rate_due_at)
    )
    insert into checked_prompts (organisation_id, prompt_id, last_signal_id, rate_due_at)
    select ${organisationId}, g.prompt_id, g.last_signal_id, ${firstRateDueAt}::timestamptz from checked g
    on conflict do nothing
    returning prompt_id as id`
  return rows.map(({ id }) => id)
}

/** Gives the verdicts of an entry also to the one that stands for its change now, so that they are not announced again. */
export async function copyVerdicts(sql: Sql, organisationId: number, pairs: { from: number; to: { id: number } }[]) {
  await sql`
    insert into decided_verdicts (organisation_id, entry_id, verdict, decided_at)
    select v.organisation_id, g.to_id, v.verdict, v.decided_at
    from unnest(
      ${pairs.map(({ from }) => String(from))}::text[]::bigint[], ${pairs.map(({ to }) => String(to.id))}::text[]::bigint[]
    ) g (from_id, to_id)
    join decided_verdicts v on v.organisation_id = ${organisationId} and v.entry_id = g.from_id
    on conflict do nothing`
}

/**
 * Forgets the checks of prompts whose verdicts no endpoint wants now. An endpoint that wants them from now on is not sent
 * what was decided in between.
 */
export async function forgetUnwatched(sql: Sql, organisationId: number): Promise<void> {
  await sql`
    delete from checked_prompts c
    using prompts p
    where c.organisation_id = ${organisationId} and p.organisation_id = c.organisation_id and p.id = c.prompt_id
      and not exists (
        select from webhook_endpoints e
        where e.organisation_id = p.organisation_id and e.disabled_at is null
          and (e.events is null or e.events && '{impact.decided,rate.changed}')
          and (e.prompts is null or p.public_id = any (e.prompts))
      )`
}

/** Lets the next check of the prompts be like the first, which announces nothing: their records were corrected. */
export async function forgetChecks(sql: Sql, organisationId: number, promptIds: number[]): Promise<void> {
  await sql`
    delete from checked_prompts
    where organisation_id = ${organisationId} and prompt_id = any (${promptIds.map(String)}::text[]::bigint[])`
}
