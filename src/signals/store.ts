import type { Sql } from '../db/client.ts'

export type SignalToRecord = {
  organisationId: number
  promptId: number
  value: string
  metadata: string | null
  createdAt: Date
  /** Of createdAt: `2026-11`. */
  month: string
  /** The caller's Idempotency-Key. */
  repeatKey: string | null
}

/** What became of a signal, with the count after it and the limit in force. */
export type Recorded = {
  outcome: 'recorded' | 'refused' | 'repeated' | 'differs'
  id: number
  createdAt: Date
  used: number
  limit: number
}

export async function recordSignals(sql: Sql, signals: SignalToRecord[]): Promise<Recorded[]> {
  const { months, numbers } = numberMonths(signals)
  const rows = await sql<Recorded & { item: number }>`
    select item, outcome, signal_id as id, recorded_at as "createdAt", used_after as used, limit_now as limit
    from record_signals(
      ${months.map(({ organisationId }) => String(organisationId))}::text[]::bigint[],
      ${months.map(({ month }) => `${month}-01`)}::text[]::date[],
      ${numbers}::text[]::integer[],
      ${signals.map((signal) => String(signal.promptId))}::text[]::bigint[],
      ${signals.map((signal) => signal.value)}::text[],
      ${signals.map((signal) => signal.metadata)}::text[],
      ${signals.map((signal) => signal.createdAt.toISOString())}::text[]::timestamptz[],
      ${signals.map((signal) => signal.repeatKey)}::text[]
    )`
  // An answer at the wrong place would be told to another organisation: better none.
  if (!signals.every((_, index) => rows[index]?.item === index + 1)) throw new Error('the answers are out of order')
  return rows
}

type OrganisationMonth = { organisationId: number; month: string }

/** Every month of an organisation once, in a fixed order, and for each signal the number of its own. */
function numberMonths(signals: SignalToRecord[]): { months: OrganisationMonth[]; numbers: string[] } {
  const nameOf = ({ organisationId, month }: OrganisationMonth) => `${organisationId} ${month}`
  const distinct = new Map(signals.map((signal) => [nameOf(signal), signal]))
  const months = [...distinct.values()].sort(
    (a, b) => a.organisationId - b.organisationId || (a.month < b.month ? -1 : 1),
  )
  const numberOf = new Map(months.map((month, index) => [nameOf(month), String(index + 1)]))
  return { months, numbers: signals.map((signal) => numberOf.get(nameOf(signal)) as string) }
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
