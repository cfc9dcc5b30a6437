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

/** What became of one write. A list for each column: the driver takes longer to read a row for each signal. */
type Written = {
  write: number
  /** Of each period: the count and the limit after it, and how many were recorded. */
  counts: number[]
  limits: number[]
  granted: number[]
  /** Of those recorded, in order. */
  ids: number[] | null
  /** Of those that repeat an earlier one: position, id and time of that, and whether it is the same. */
  known: [item: number, id: number, at: string, isSame: boolean][] | null
}

/** Numbered, to know the answer to each. */
let writes = 0

export async function recordSignals(sql: Sql, signals: SignalToRecord[]): Promise<Recorded[]> {
  const { periods, places } = numberPeriods(signals)
  const hasKeys = signals.some((signal) => signal.repeatKey !== null)
  writes += 1
  const write = writes
  const [written] = await sql<Written>`
    select
      ${write}::bigint as write, to_json(counts) as counts, to_json(limits) as limits, to_json(granted) as granted,
      to_json(ids) as ids, known
    from write_signals(
      ${arrayOf(periods.map((period) => period.name.split(' ')[0]))}::text::bigint[],
      ${arrayOf(periods.map((period) => `${period.name.split(' ')[1]}-01`))}::text::date[],
      ${arrayOf(periods.map((period) => period.asked))}::text::integer[],
      ${arrayOf(places.map((place) => place.number))}::text::integer[],
      ${arrayOf(places.map((place) => place.nth))}::text::integer[],
      ${arrayOf(signals.map((signal) => signal.promptId))}::text::bigint[],
      ${arrayOf(signals.map((signal) => signal.value))}::text::text[],
      ${JSON.stringify(signals.map((signal) => signal.metadata))}::text::json,
      ${arrayOf(signals.map((signal) => signal.createdAt))}::text::timestamptz[],
      ${hasKeys ? JSON.stringify(signals.map((signal) => signal.repeatKey)) : null}::text::json
    )`
  // The answer to another question would be told to other organisations: better none.
  if (written?.write !== write) throw new Error('the answer is not to what was asked')
  return tellApart(signals, places, written)
}

/** Which signal was answered what: of those of a period that are new, the first ones were recorded. */
function tellApart(signals: SignalToRecord[], places: { number: number }[], written: Written): Recorded[] {
  const { counts, limits, granted, ids } = written
  const periods = granted.map((left, index) => ({
    left,
    used: Number(counts[index]) - left,
    limit: Number(limits[index]),
  }))
  const known = new Map(written.known?.map(([item, ...earlier]) => [item, earlier]))
  let next = 0
  return signals.map(({ createdAt, month }, index) => {
    const period = periods[Number(places[index]?.number) - 1] as (typeof periods)[number]
    const one: Recorded = { outcome: 'refused', id: null, createdAt, used: period.used, limit: period.limit, month }
    const earlier = known.get(index + 1)
    if (earlier) {
      const [id, at, isSame] = earlier
      one.outcome = isSame ? 'repeated' : 'differs'
      one.id = id
      one.createdAt = new Date(at).toISOString()
    } else if (period.left > 0) {
      period.left -= 1
      period.used += 1
      one.outcome = 'recorded'
      one.id = Number(ids?.[next++])
      one.used = period.used
    }
    return one
  })
}

/** As Postgres writes an array, for words that need no quotes: several times as fast as the driver, which sets them. */
const arrayOf = (words: unknown[]): string => `{${words.join(',')}}`

/** Every period once, in a fixed order; and for each signal the number of its own, and its place there. */
function numberPeriods(signals: SignalToRecord[]) {
  const names = [...new Set(signals.map(({ period }) => period))].sort()
  const periods = names.map((name, index) => ({ name, number: index + 1, asked: 0 }))
  const byName = new Map(periods.map((period) => [period.name, period]))
  const places = signals.map((signal) => {
    const period = byName.get(signal.period) as (typeof periods)[number]
    period.asked += 1
    return { number: period.number, nth: period.asked }
  })
  return { periods, places }
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
