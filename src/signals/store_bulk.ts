import type { Sql } from '../db/client.ts'
import type { OwnedPrompt, Prompt } from '../prompts/find.ts'
import type { SignalToWrite } from './store.ts'

/**
 * Takes the lock of write_signals, until the transaction ends: ids of an organisation must commit in their order. Returns
 * false when there is no such prompt, which a second statement sees even if it was erased during the wait.
 */
export async function lockSignals(sql: Sql, { id, organisationId, publicId }: Prompt): Promise<boolean> {
  await sql`select pg_advisory_xact_lock(5167, ${organisationId}::bigint::integer)`
  const rows = await sql`
    select
    from prompts
    where id = ${id} and organisation_id = ${organisationId} and public_id = ${publicId}`
  return rows.length > 0
}

/** Erases signals, also from the counts. Returns how many there were. */
export async function eraseSignals(sql: Sql, { id, organisationId }: OwnedPrompt, ids: number[]): Promise<number> {
  const [row] = await sql<{ erased: number }>`
    select erase_signals(${organisationId}, ${id}, ${ids.map(String)}::text[]::bigint[]) as erased`
  return row?.erased ?? 0
}

/** The signals of a step. `erased` is less than `found` when another transaction was erasing some of them. */
export type ErasedStep = { found: number; erased: number; firstAt: Date | null }

/**
 * Erases up to `limit` of a prompt's signals from `since` on and older than `before`, the oldest first. The transaction
 * does not wait for the disk: see flush.
 */
export async function eraseBefore(
  sql: Sql,
  { id, organisationId }: OwnedPrompt,
  since: Date,
  before: Date,
  limit: number,
): Promise<ErasedStep> {
  const [row] = await sql<ErasedStep>`
    with found as materialized (
      select array_agg(f.id) as ids, min(f.created_at) as first_at
      from (
        select s.id, s.created_at from signals s
        where s.organisation_id = ${organisationId} and s.prompt_id = ${id}
          and s.created_at >= ${since} and s.created_at < ${before}
        order by s.created_at, s.id
        limit ${limit}
      ) f
    )
    select
      coalesce(cardinality(f.ids), 0) as found, f.first_at as "firstAt",
      case when f.ids is null then 0 else erase_signals(${organisationId}, ${id}, f.ids) end as erased
    from found f
    where set_config('synchronous_commit', 'off', true) is not null`
  return row as NonNullable<typeof row>
}

/** Waits until all that was committed before is durable: the log is sequential. */
export const flush = (sql: Sql) => sql`select pg_logical_emit_message(true, 'prompt-signals', '')`

/** Whether the organisation still has this retention, and this transaction is the only one on all replicas that applies any. */
export async function claimRetention(sql: Sql, organisationId: number, days: number): Promise<boolean> {
  const [row] = await sql<{ isOnly: boolean }>`
    select pg_try_advisory_xact_lock(5168, 0) as "isOnly"
    from organisations
    where id = ${organisationId} and retention_days = ${days}`
  return row?.isOnly ?? false
}

/** Deletes what is left of a prompt's signals, and their counts, together with the prompt. The usage of the month stays. */
export async function deleteSignals(sql: Sql, { id, organisationId }: OwnedPrompt): Promise<void> {
  // Before the deletion begins, because it does not see what a rollup adds during the wait.
  await sql`select from lock_watermark(${organisationId}, ${id})`
  await sql`
    with
      rows as (delete from signals where organisation_id = ${organisationId} and prompt_id = ${id}),
      keys as (delete from idempotency_keys where organisation_id = ${organisationId} and prompt_id = ${id}),
      counts as (delete from signal_counts where organisation_id = ${organisationId} and prompt_id = ${id}),
      commits as (delete from signal_commit_counts where organisation_id = ${organisationId} and prompt_id = ${id})
    delete from signal_watermarks where organisation_id = ${organisationId} and prompt_id = ${id}`
}

/** A signal of any time in the past. Its metadata is JSON. */
export type PastSignal = Pick<SignalToWrite, 'value' | 'metadata' | 'createdAt' | 'subject'>

const timesOf = (signals: PastSignal[]) => signals.map(({ createdAt }) => createdAt.toISOString())

const subjectsOf = (signals: PastSignal[]) => signals.map(({ subject = null }) => subject)

/**
 * What tells a signal of a prompt from others: time, value, metadata and subject. `plain` is the identity without the subject.
 * Postgres writes equal metadata in one way.
 */
export const selectIdentities = (sql: Sql, signals: PastSignal[]) =>
  sql<{ identity: string; plain: string }>`
    select
      md5((g.created_at, g.value, g.metadata::jsonb, g.subject)::text) as identity,
      md5((g.created_at, g.value, g.metadata::jsonb, null)::text) as plain
    from unnest(
      ${signals.map(({ value }) => value)}::text[], ${signals.map(({ metadata }) => metadata)}::text[],
      ${timesOf(signals)}::text[]::timestamptz[], ${subjectsOf(signals)}::text[]
    ) with ordinality g (value, metadata, created_at, subject, number)
    order by g.number`

/** Counts the signals that the prompt has at some times, by identity: of each time, those after an id. */
export async function countStored(sql: Sql, prompt: Prompt, times: Map<string, { lastId: number }>) {
  const rows = await sql<{ at: Date; identity: string; count: number; lastId: number }>`
    select
      s.created_at as at, md5((s.created_at, s.value, s.metadata, split_part(s.subject, e'\\t', -1))::text) as identity,
      count(*) as count, max(s.id) as "lastId"
    from unnest(
      ${[...times.keys()]}::text[]::timestamptz[],
      ${[...times.values()].map(({ lastId }) => `${lastId}`)}::text[]::bigint[]
    ) t (at, last_id)
    join signals s on s.created_at = t.at and s.id > t.last_id
    where s.organisation_id = ${prompt.organisationId} and s.prompt_id = ${prompt.id}
    group by 1, 2`
  return rows.map(({ at, ...one }) => ({ ...one, time: at.toISOString() }))
}

/** Inserts signals of past months, which count towards no limit. The caller has locked the organisation. */
export async function insertPastSignals(sql: Sql, prompt: Prompt, signals: PastSignal[]): Promise<void> {
  await sql`
    insert into signals (organisation_id, prompt_id, value, metadata, created_at, subject)
    select ${prompt.organisationId}, ${prompt.id}, g.value, g.metadata::jsonb, g.created_at, g.subject
    from unnest(
      ${signals.map(({ value }) => value)}::text[], ${signals.map(({ metadata }) => metadata)}::text[],
      ${timesOf(signals)}::text[]::timestamptz[], ${subjectsOf(signals)}::text[]
    ) with ordinality g (value, metadata, created_at, subject, number)
    order by g.number`
}

/** Gives a prompt's signals these values and metadata, also in the counts. The caller has locked the organisation. */
export const replaceSignals = (sql: Sql, prompt: OwnedPrompt, signals: (PastSignal & { id: number })[]) =>
  sql`
    select replace_signals(
      ${prompt.organisationId}, ${prompt.id}, ${signals.map(({ id }) => `${id}`)}::text[]::bigint[],
      ${signals.map(({ value }) => value)}::text[], ${signals.map(({ metadata }) => metadata)}::text[]::jsonb[]
    )`
