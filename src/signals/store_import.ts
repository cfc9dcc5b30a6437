import type { Sql } from '../db/client.ts'
import type { Prompt } from '../prompts/find.ts'
import type { SignalToWrite } from './store.ts'

/** A signal of any time in the past. Its metadata is JSON. */
export type PastSignal = Pick<SignalToWrite, 'value' | 'metadata' | 'createdAt'>

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

const timesOf = (signals: PastSignal[]) => signals.map(({ createdAt }) => createdAt.toISOString())

/** What tells a signal of a prompt from others: time, value and metadata. Postgres writes equal metadata in one way. */
export async function selectIdentities(sql: Sql, signals: PastSignal[]): Promise<string[]> {
  const rows = await sql<{ hash: string | null }>`
    select md5(g.metadata::jsonb::text) as hash
    from unnest(${signals.map(({ metadata }) => metadata)}::text[]) with ordinality g (metadata, number)
    order by g.number`
  return signals.map(({ createdAt, value }, index) => identityOf(createdAt, value, rows[index]?.hash ?? null))
}

/** How many signals of each identity the prompt has at the times of these. */
export async function countStored(sql: Sql, prompt: Prompt, signals: PastSignal[]): Promise<Map<string, number>> {
  const rows = await sql<{ at: Date; value: string; hash: string | null; number: number }>`
    select s.created_at as at, s.value, md5(s.metadata::text) as hash, count(*) as number
    from signals s
    where s.organisation_id = ${prompt.organisationId} and s.prompt_id = ${prompt.id}
      and s.created_at = any(${[...new Set(timesOf(signals))]}::text[]::timestamptz[])
    group by 1, 2, 3`
  return new Map(rows.map(({ at, value, hash, number }) => [identityOf(at, value, hash), number]))
}

const identityOf = (at: Date, value: string, hash: string | null) => `${at.getTime()} ${value} ${hash}`

/** Inserts signals of past months, which count towards no limit. The caller has locked the organisation. */
export async function insertPastSignals(sql: Sql, prompt: Prompt, signals: PastSignal[]): Promise<void> {
  await sql`
    insert into signals (organisation_id, prompt_id, value, metadata, created_at)
    select ${prompt.organisationId}, ${prompt.id}, g.value, g.metadata::jsonb, g.created_at
    from unnest(
      ${signals.map(({ value }) => value)}::text[], ${signals.map(({ metadata }) => metadata)}::text[],
      ${timesOf(signals)}::text[]::timestamptz[]
    ) with ordinality g (value, metadata, created_at, number)
    order by g.number`
}
