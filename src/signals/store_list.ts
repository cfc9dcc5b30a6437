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
