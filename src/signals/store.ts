import type { Sql } from '../db/client.ts'

export type SignalToRecord = {
  organisationId: number
  promptId: number
  value: string
  metadata: string | null
  /** ISO 8601, UTC. */
  createdAt: string
  /** The caller's Idempotency-Key. */
  repeatKey: string | null
}

/** What became of a signal, with the count after it and the limit in force. */
export type Recorded = {
  outcome: 'recorded' | 'refused' | 'repeated' | 'differs'
  id: number
  /** ISO 8601, UTC. */
  createdAt: string
  used: number
  limit: number
}

type RecordedRow = Omit<Recorded, 'createdAt'> & { item: number; repeatedFrom: Date | null }

export async function recordSignals(sql: Sql, signals: SignalToRecord[]): Promise<Recorded[]> {
  const { months, numbers } = numberMonths(signals)
  const rows = await sql<RecordedRow>`
    select item, outcome, signal_id as id, used_after as used, limit_now as limit,
      case when outcome = 'repeated' then recorded_at end as "repeatedFrom"
    from record_signals(
      ${arrayOf(months.map(({ organisationId }) => organisationId))}::text::bigint[],
      ${arrayOf(months.map(({ month }) => `${month}-01`))}::text::date[],
      ${arrayOf(numbers)}::text::integer[],
      ${arrayOf(signals.map((signal) => signal.promptId))}::text::bigint[],
      ${arrayOf(signals.map((signal) => signal.value))}::text::text[],
      ${signals.map((signal) => signal.metadata)}::text[],
      ${arrayOf(signals.map((signal) => signal.createdAt))}::text::timestamptz[],
      ${signals.map((signal) => signal.repeatKey)}::text[]
    )`
  return signals.map(({ createdAt }, index) => {
    const row = rows[index]
    // An answer at the wrong place would be told to another organisation: better none.
    if (row?.item !== index + 1) throw new Error('the answers are out of order')
    const { outcome, id, used, limit, repeatedFrom } = row
    return { outcome, id, used, limit, createdAt: repeatedFrom?.toISOString() ?? createdAt }
  })
}

/** As Postgres writes an array, for words that need no quotes: several times as fast as the driver, which sets them. */
const arrayOf = (words: (number | string)[]): string => `{${words.join(',')}}`

type OrganisationMonth = { organisationId: number; month: string }

/** Every month of an organisation once, in a fixed order, and for each signal the number of its own. */
function numberMonths(signals: SignalToRecord[]): { months: OrganisationMonth[]; numbers: number[] } {
  const named = new Map<string, OrganisationMonth>()
  const names = signals.map(({ organisationId, createdAt }) => {
    const month = createdAt.slice(0, 7)
    const name = `${organisationId} ${month}`
    if (!named.has(name)) named.set(name, { organisationId, month })
    return name
  })
  const sorted = [...named].sort(([, a], [, b]) => a.organisationId - b.organisationId || (a.month < b.month ? -1 : 1))
  const numberOf = new Map(sorted.map(([name], index) => [name, index + 1]))
  return { months: sorted.map(([, month]) => month), numbers: names.map((name) => numberOf.get(name) as number) }
}

export type Usage = { used: number; limit: number }

/** The use and the limit of each pair of an organisation's id and a month, written as `7 2026-11`. */
export async function readUsages(sql: Sql, pairs: string[]): Promise<Map<string, Usage>> {
  const rows = await sql<Usage & { pair: string }>`
    select asked.pair, coalesce(u.used, 0) as used, coalesce(o.monthly_limit, p.monthly_limit) as limit
    from unnest(${pairs}::text[]) asked (pair)
    join organisations o on o.id = split_part(asked.pair, ' ', 1)::bigint
    join plans p on p.name = o.plan
    left join signal_usage u on u.organisation_id = o.id
      and u.month = (split_part(asked.pair, ' ', 2) || '-01')::date`
  return new Map(rows.map(({ pair, ...usage }) => [pair, usage]))
}

/** Forgets idempotency keys made before the time, some at a time; whether there may be more. */
export async function deleteRepeatKeys(sql: Sql, before: Date, most: number): Promise<boolean> {
  const rows = await sql`
    delete from idempotency_keys
    where (organisation_id, key) in (
      select organisation_id, key from idempotency_keys
      where created_at < ${before}
      order by created_at
      limit ${most}
      for update skip locked
    )
    returning 1`
  return rows.length === most
}
