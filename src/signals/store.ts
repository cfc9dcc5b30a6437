import type { Sql } from '../db/client.ts'
import type { Month } from '../lib/months.ts'

export type SignalToRecord = {
  organisationId: number
  promptId: number
  value: string
  metadata: string | null
  /** ISO 8601, UTC. */
  createdAt: string
  month: Month
  /** The organisation's month, as `7 2026-11`. */
  period: string
  /** The caller's Idempotency-Key. */
  repeatKey: string | null
}

/** What became of a signal, with the count after it and the limit in force. */
export type Recorded = {
  outcome: 'recorded' | 'refused' | 'repeated' | 'differs'
  /** Null when refused. */
  id: number | null
  /** ISO 8601, UTC. */
  createdAt: string
  used: number
  limit: number
  /** The one that it was asked in. */
  month: Month
}

/** A list for each column: the driver takes longer to read a row for each signal. */
type RecordedLists = {
  items: number[]
  outcomes: Recorded['outcome'][]
  ids: (number | null)[]
  /** Of those that repeat an earlier one. */
  times: (string | null)[]
  useds: number[]
  limits: number[]
}

export async function recordSignals(sql: Sql, signals: SignalToRecord[]): Promise<Recorded[]> {
  const { periods, numbers } = numberPeriods(signals)
  const [lists] = await sql<RecordedLists>`
    select
      to_json(array_agg(item)) as items,
      to_json(array_agg(outcome)) as outcomes,
      to_json(array_agg(signal_id)) as ids,
      to_json(array_agg(case when outcome = 'repeated' then recorded_at end)) as times,
      to_json(array_agg(used_after)) as useds,
      to_json(array_agg(limit_now)) as limits
    from record_signals(
      ${arrayOf(periods.map(([organisationId]) => organisationId))}::text::bigint[],
      ${arrayOf(periods.map(([, month]) => `${month}-01`))}::text::date[],
      ${arrayOf(numbers)}::text::integer[],
      ${arrayOf(signals.map((signal) => signal.promptId))}::text::bigint[],
      ${arrayOf(signals.map((signal) => signal.value))}::text::text[],
      array(select json_array_elements_text(${JSON.stringify(signals.map((signal) => signal.metadata))}::text::json)),
      ${arrayOf(signals.map((signal) => signal.createdAt))}::text::timestamptz[],
      array(select json_array_elements_text(${JSON.stringify(signals.map((signal) => signal.repeatKey))}::text::json))
    )`
  return signals.map(({ createdAt, month }, index) => {
    const { items, outcomes, ids, times, useds, limits } = lists as RecordedLists
    // An answer at the wrong place would be told to another organisation: better none.
    if (items[index] !== index + 1) throw new Error('the answers are out of order')
    const repeatedFrom = times[index]
    return {
      outcome: outcomes[index] as Recorded['outcome'],
      id: ids[index] as number | null,
      createdAt: repeatedFrom ? new Date(repeatedFrom).toISOString() : createdAt,
      used: useds[index] as number,
      limit: limits[index] as number,
      month,
    }
  })
}

/** As Postgres writes an array, for words that need no quotes: several times as fast as the driver, which sets them. */
const arrayOf = (words: unknown[]): string => `{${words.join(',')}}`

/** Every period once, in a fixed order, and for each signal the number of its own. */
function numberPeriods(signals: SignalToRecord[]): { periods: string[][]; numbers: number[] } {
  const distinct = [...new Set(signals.map(({ period }) => period))].sort()
  const numberOf = new Map(distinct.map((period, index) => [period, index + 1]))
  return {
    periods: distinct.map((period) => period.split(' ')),
    numbers: signals.map(({ period }) => numberOf.get(period) as number),
  }
}

export type Usage = { used: number; limit: number }

/** The use and the limit of each organisation's month, written as `7 2026-11`. */
export async function readUsages(sql: Sql, periods: string[]): Promise<Map<string, Usage>> {
  const rows = await sql<Usage & { period: string }>`
    select asked.period, coalesce(u.used, 0) as used, coalesce(o.monthly_limit, p.monthly_limit) as limit
    from unnest(${periods}::text[]) asked (period)
    join organisations o on o.id = split_part(asked.period, ' ', 1)::bigint
    join plans p on p.name = o.plan
    left join signal_usage u on u.organisation_id = o.id
      and u.month = (split_part(asked.period, ' ', 2) || '-01')::date`
  return new Map(rows.map(({ period, ...usage }) => [period, usage]))
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
