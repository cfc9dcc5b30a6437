import type { Sql } from '../db/client.ts'
import type { PromptIds } from './store_reads.ts'

export type ExportFormat = 'ndjson' | 'csv'

/** Where an export goes on: after the signal of this time and id. */
export type ExportPosition = { at: Date | null; id: number }

type ExportRange = { until: Date | null; value: string | null; format: ExportFormat }

type Step = {
  /** Null when there are none. */
  lines: string | null
  exported: number
  lookedAt: number
  lastTime: Date
  lastId: number
}

/** The next lines of a prompt's signals. */
export async function selectLines(
  sql: Sql,
  { id, publicId }: PromptIds,
  after: ExportPosition,
  { until, value, format }: ExportRange,
  maxRows: number,
  maxBytes: number,
): Promise<Step> {
  const [row] = await sql<Step>`
    select lines, exported, looked_at as "lookedAt", last_time as "lastTime", last_id as "lastId"
    from export_signals(
      ${id}, ${publicId}::text,
      ${after.at?.toISOString() ?? '-infinity'}::text::timestamptz, ${String(after.id)}::text::bigint,
      ${until?.toISOString() ?? 'infinity'}::text::timestamptz, ${value}::text, ${format === 'csv'},
      ${maxRows}, ${maxBytes}
    )`
  return row as Step
}

/** The time of a signal of an organisation, and its prompt; undefined if there is no such signal. */
export async function findSignal(
  sql: Sql,
  organisationId: number,
  signalId: number,
): Promise<(PromptIds & { at: Date }) | undefined> {
  const [row] = await sql<PromptIds & { at: Date }>`
    select p.id, p.public_id as "publicId", s.created_at as at
    from prompts p
    cross join lateral (
      select s.created_at from signals s
      where s.prompt_id = p.id and s.id = ${String(signalId)}::text::bigint
      limit 1
    ) s
    where p.organisation_id = ${organisationId}
    limit 1`
  return row
}
