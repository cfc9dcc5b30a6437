import type { Sql } from '../db/client.ts'

/** A signal as it is listed; its metadata is JSON text, and so has every digit that was sent. */
export type SignalRow = { id: number; value: string; metadata: string | null; created_at: Date }

export type SignalFilter = {
  value: string | null
  since: Date | null
  until: Date | null
  /** Names of top-level fields of the metadata, with the text that each must have. */
  metadata: [key: string, text: string][]
}

export type Position = { id: number; at: Date }

type FoundSignals = {
  rows: SignalRow[]
  /** Where the search stopped because it had looked at enough; null when it did not. */
  stoppedAt: Position | null
}

/** The newest signals of a prompt before a position, which is before `until`; looks at a bounded number of them. */
export async function selectSignals(
  sql: Sql,
  promptId: number,
  before: Position | null,
  { value, since, until, metadata }: SignalFilter,
  maxRows: number,
  maxLookedAt: number,
): Promise<FoundSignals> {
  const rows = await sql<SignalRow>`
    select id, value, metadata, created_at
    from list_signals(
      ${promptId},
      ${(before?.at ?? until)?.toISOString() ?? 'infinity'}::text::timestamptz,
      ${String(before?.id ?? 0)}::text::bigint,
      ${since?.toISOString() ?? '-infinity'}::text::timestamptz,
      ${value}::text,
      ${metadata.map(([key]) => key)}::text[],
      ${metadata.map(([, text]) => text)}::text[],
      ${maxRows},
      ${maxLookedAt}
    )`
  const last = rows.at(-1)
  if (!last || last.value !== null) return { rows, stoppedAt: null }
  return { rows: rows.slice(0, -1), stoppedAt: { id: last.id, at: last.created_at } }
}

type SpanCount = { number: number; positive: number; negative: number }

/** Counts the signals between each two of the ascending bounds; spans are numbered from 1, and empty ones left out. */
export const countBetween = (sql: Sql, promptId: number, bounds: Date[]): Promise<SpanCount[]> =>
  sql<SpanCount>`
    select number, positive, negative
    from count_signals_between(${promptId}, ${bounds.map((bound) => bound.toISOString())}::text[]::timestamptz[])`

/** A value of the metadata by its hash, its first 100 characters and a signal that has it; nulls for none. */
type ValueCount = [hash: string | null, begin: string | null, id: number | null, positive: number, negative: number]

export type MetadataCounts = { counts: ValueCount[]; lookedAt: number; lastTime: Date; lastId: number }

/** Counts the newest signals before a position and from a time on by what their metadata has under a key. */
export async function countByMetadata(
  sql: Sql,
  promptId: number,
  before: Position,
  since: Date,
  key: string,
  maxSignals: number,
): Promise<MetadataCounts> {
  const [row] = await sql<MetadataCounts>`
    select counts, looked_at as "lookedAt", last_time as "lastTime", last_id as "lastId"
    from count_by_metadata(
      ${promptId}, ${before.at}, ${String(before.id)}::text::bigint, ${since}, ${key}::text, ${maxSignals}
    )`
  return row as MetadataCounts
}

/** What the metadata of these signals of a prompt has under a key. */
export const selectMetadataTexts = (sql: Sql, promptId: number, ids: number[], key: string) =>
  sql<{ id: number; text: string }>`
    select s.id, text_of_metadata(s.metadata, ${key}::text) as text
    from unnest(${ids.map(String)}::text[]::bigint[]) given (id)
    cross join lateral (
      select s.id, s.metadata from signals s where s.prompt_id = ${promptId} and s.id = given.id limit 1
    ) s`

/** Counts at most so many of a prompt's signals that were not counted yet; how many there were. */
export async function countSignals(sql: Sql, promptId: number, maxRows: number): Promise<number> {
  const [row] = await sql<{ counted: number }>`select count_signals(${promptId}, ${maxRows}) as counted`
  return row?.counted ?? 0
}

/** Those of these prompts of whose signals more than so many are not counted yet. */
export async function selectUncounted(sql: Sql, promptIds: number[], moreThan: number): Promise<number[]> {
  const rows = await sql<{ id: number }>`
    select p.id from unnest(${promptIds.map(String)}::text[]::bigint[]) p (id)
    where has_uncounted_signals(p.id, ${moreThan})`
  return rows.map(({ id }) => id)
}

/** The signals of a prompt, or those of a day over all prompts. */
type MonthCount = { promptId: number; date: null; total: number } | { promptId: null; date: string; total: number }

/** How many signals of a month these prompts have, by prompt and by day; those that have none are left out. */
export const countMonth = (sql: Sql, promptIds: number[], month: string): Promise<MonthCount[]> =>
  sql<MonthCount>`
    select prompt_id as "promptId", to_char(day, 'YYYY-MM-DD') as date, total
    from count_month(${promptIds.map(String)}::text[]::bigint[], ${`${month}-01`}::text::date)`

type MonthUsage = { plan: string; limit: number; used: number }

/** What an organisation has used of a month, as it was counted for the limit. */
export async function selectUsage(sql: Sql, organisationId: number, month: string): Promise<MonthUsage | undefined> {
  const [row] = await sql<MonthUsage>`
    select o.plan, u.monthly_limit as limit, u.used
    from read_usages(array[${organisationId}::bigint], array[${`${month}-01`}::text::date]) u
    cross join lateral (select o.plan from organisations o where o.id = ${organisationId} limit 1) o`
  return row
}
