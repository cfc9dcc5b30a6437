import type { Sql } from '../db/client.ts'
import type { OwnedPrompt } from '../prompts/find.ts'

/** Erases a signal, also from the counts; false when there is no such signal. */
export async function eraseSignal(sql: Sql, prompt: OwnedPrompt, signalId: number): Promise<boolean> {
  const [row] = await sql<{ erased: number }>`
    select erase_signals(${prompt.organisationId}, ${prompt.id}, array[${String(signalId)}::text::bigint]) as erased`
  return row?.erased === 1
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
