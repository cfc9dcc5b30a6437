import type { Sql } from '../db/client.ts'

export type SignalToRecord = {
  organisationId: number
  promptId: number
  value: string
  metadata: string | null
  createdAt: Date
}

/** `id` is null when the month had no room; `used` and `limit` are those after this signal. */
export type Recorded = { id: number | null; used: number; limit: number }

export const recordSignals = (sql: Sql, signals: SignalToRecord[]): Promise<Recorded[]> =>
  sql<Recorded>`
    select signal_id as id, used_after as used, limit_now as limit
    from record_signals(
      ${signals.map((signal) => String(signal.organisationId))}::text[]::bigint[],
      ${signals.map((signal) => String(signal.promptId))}::text[]::bigint[],
      ${signals.map((signal) => signal.value)}::text[],
      ${signals.map((signal) => signal.metadata)}::text[],
      ${signals.map((signal) => signal.createdAt.toISOString())}::text[]::timestamptz[]
    )
    order by item`

export async function readUsage(
  sql: Sql,
  organisationId: number,
  month: string,
): Promise<{ used: number; limit: number }> {
  const [row] = await sql<{ used: number; limit: number }>`
    select coalesce(u.used, 0) as used, coalesce(o.monthly_limit, p.monthly_limit) as limit
    from organisations o
    join plans p on p.name = o.plan
    left join signal_usage u on u.organisation_id = o.id and u.month = ${`${month}-01`}::text::date
    where o.id = ${organisationId}`
  return row as { used: number; limit: number }
}
