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

/** The counts of a value of the metadata, of all values that are left, or of the signals that have none. */
export type ValueCount = {
  kind: 'value' | 'rest' | 'none'
  value: string | null
  /** How many values these are. */
  number: number
  positive: number
  negative: number
}

/** Counts the newest signals of a range, at most so many, by what their metadata has under a key; the most first. */
export const countByMetadata = (
  sql: Sql,
  promptId: number,
  { since, until }: { since: Date; until: Date },
  key: string,
  maxSignals: number,
  maxValues: number,
): Promise<ValueCount[]> =>
  sql<ValueCount>`
    select kind, value, number, positive, negative
    from count_by_metadata(${promptId}, ${since}, ${until}, ${key}::text, ${maxSignals}, ${maxValues})`

/** Counts at most so many of a prompt's signals that were not counted yet; how many there were. */
export async function countSignals(sql: Sql, promptId: number, maxRows: number): Promise<number> {
  const [row] = await sql<{ counted: number }>`select count_signals(${promptId}, ${maxRows}) as counted`
  return row?.counted ?? 0
}

/** Whether more than so many of a prompt's signals are not counted yet. */
export async function hasUncounted(sql: Sql, promptId: number, moreThan: number): Promise<boolean> {
  const [row] = await sql<{ has: boolean }>`select has_uncounted_signals(${promptId}, ${moreThan}) as has`
  return row?.has ?? false
}

/** Prompts of an organisation of whose signals more than so many are not counted yet. */
export const selectUncountedPrompts = (sql: Sql, organisationId: number, moreThan: number): Promise<{ id: number }[]> =>
  sql<{ id: number }>`select id from uncounted_prompts(${organisationId}, ${moreThan}) id`

type UsageRow = {
  plan: string
  limit: number
  used: number
  days: { date: string; total: number }[]
  prompts: { prompt: string; total: number }[]
  otherPrompts: { prompts: number; total: number }
}

/** What an organisation has used of a month; by day, and by the prompts that have most of it. */
export async function selectUsage(
  sql: Sql,
  organisationId: number,
  month: string,
  maxPrompts: number,
): Promise<UsageRow | undefined> {
  const [row] = await sql<UsageRow>`
    select plan, monthly_limit as limit, used, days, prompts, other_prompts as "otherPrompts"
    from read_usage(${organisationId}, ${`${month}-01`}::text::date, ${maxPrompts})`
  return row
}
