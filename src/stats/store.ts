import type { Sql } from '../db/client.ts'

/** A signal's place in the order of time. */
export type Position = { id: number; at: Date }

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
