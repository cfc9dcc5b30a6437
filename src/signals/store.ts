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
  /** The caller's Idempotency-Key. */
  idempotencyKey: string | null
  /** The browser key that it came with, which counts its own signals; null for any other. */
  browserKeyId: number | null
}

/** What became of a signal, with the count after it and the limit in force. */
export type Recorded = {
  outcome: 'recorded' | 'refused' | 'replayed' | 'conflict'
  /** Null when refused. */
  id: number | null
  /** ISO 8601, UTC. */
  createdAt: string
  used: number
  limit: number
  /** The same of the browser key that it came with, if that has a limit of its own. */
  ofKey?: Usage | undefined
  /** The month that the signal was sent in. */
  month: Month
}

/** What write_signals returns. The driver reads lists faster than a row for each signal. */
type Written = {
  write: number
  /** For each usage row: the count before this write, and the limit. */
  usedBefore: number[]
  limits: number[]
  /** For each signal: its id, or null when it was not recorded. */
  ids: (number | null)[]
  /** For each key that was used before: position, id and time of the earlier signal, and whether it is the same. */
  replays: [position: number, id: number, at: string, isSame: boolean][] | null
  /** For each usage row of a browser key: the count before this write, and the limit, if any. */
  keyUsedBefore: number[] | null
  keyLimits: (number | null)[] | null
}

/** An organisation's month, which has one row in signal_usage. */
export type UsageMonth = { organisationId: number; month: Month }

/** Writes are numbered, so that each result can be matched to its write. */
let writes = 0

export async function writeSignals(sql: Sql, signals: SignalToRecord[]): Promise<Recorded[]> {
  const { rows, rowNumbers, nths } = groupByUsageRow(signals)
  const browserKeys = groupByKeyUsageRow(signals)
  const hasKeys = signals.some(({ idempotencyKey }) => idempotencyKey !== null)
  writes += 1
  const write = writes
  const [written] = await sql<Written>`
    select
      ${write}::bigint as write, to_json(used_before) as "usedBefore", to_json(limits) as limits, to_json(ids) as ids,
      replays, to_json(key_used_before) as "keyUsedBefore", to_json(key_limits) as "keyLimits"
    from write_signals(
      ${arrayOf(rows.map(({ organisationId }) => organisationId))}::text::bigint[],
      ${arrayOf(rows.map(({ month }) => `${month.name}-01`))}::text::date[],
      ${arrayOf(rowNumbers)}::text::integer[],
      ${arrayOf(nths)}::text::integer[],
      ${arrayOf(signals.map(({ promptId }) => promptId))}::text::bigint[],
      ${arrayOf(signals.map(({ value }) => value))}::text::text[],
      ${JSON.stringify(signals.map(({ metadata }) => metadata))}::text::json,
      ${arrayOf(signals.map(({ createdAt }) => createdAt))}::text::timestamptz[],
      ${hasKeys ? JSON.stringify(signals.map(({ idempotencyKey }) => idempotencyKey)) : null}::text::json,
      ${browserKeys && arrayOf(browserKeys.rows.map(({ keyId }) => keyId))}::text::bigint[],
      ${browserKeys && arrayOf(browserKeys.rows.map(({ month }) => `${month.name}-01`))}::text::date[],
      ${browserKeys && arrayOf(browserKeys.rowNumbers.map((number) => number ?? 'null'))}::text::integer[]
    )`
  // The result of another write would be shown to other organisations.
  if (written?.write !== write) throw new Error('the answer is not to what was asked')
  const recorded = toOutcomes(signals, rowNumbers, written)
  if (browserKeys) addKeyUsages(recorded, browserKeys.rowNumbers, written)
  return recorded
}

function toOutcomes(signals: SignalToRecord[], rowNumbers: number[], written: Written): Recorded[] {
  const { usedBefore: used, limits, ids } = written
  const replays = new Map(written.replays?.map(([position, ...earlier]) => [position, earlier]))
  return signals.map(({ createdAt, month }, index) => {
    const row = Number(rowNumbers[index]) - 1
    const limit = Number(limits[row])
    const id = ids[index]
    if (id) {
      used[row] = Number(used[row]) + 1
      return { outcome: 'recorded', id, createdAt, used: Number(used[row]), limit, month }
    }
    const current = { used: Number(used[row]), limit, month }
    const earlier = replays.get(index + 1)
    if (!earlier) return { outcome: 'refused', id: null, createdAt, ...current }
    const [earlierId, at, isSame] = earlier
    const outcome = isSame ? 'replayed' : 'conflict'
    return { outcome, id: earlierId, createdAt: new Date(at).toISOString(), ...current }
  })
}

/** Says of each signal that came with a limited browser key what the key had used after it. */
function addKeyUsages(recorded: Recorded[], rowNumbers: (number | null)[], written: Written): void {
  const { keyUsedBefore: used, keyLimits: limits } = written
  recorded.forEach((one, index) => {
    const row = Number(rowNumbers[index]) - 1
    const limit = limits?.[row] ?? null
    if (!used || limit === null) return
    if (one.outcome === 'recorded') used[row] = Number(used[row]) + 1
    one.ofKey = { used: Number(used[row]), limit }
  })
}

/** Writes words that need no quotes as a Postgres array: 0.1 µs a signal, where the driver's quoting takes 0.7. */
const arrayOf = (words: unknown[]): string => `{${words.join(',')}}`

/** The identity of a usage row. */
export const usageRowId = ({ organisationId, month }: UsageMonth): string => `${organisationId} ${month.name}`

/** Every usage row once; and for each signal the number of its row, from 1, and its place among the signals there. */
function groupByUsageRow(signals: SignalToRecord[]) {
  const rows = new Map<string, UsageMonth & { number: number; signals: number }>()
  const rowNumbers: number[] = []
  const nths: number[] = []
  for (const signal of signals) {
    const { organisationId, month } = signal
    const id = usageRowId(signal)
    const row = rows.get(id) ?? { organisationId, month, number: rows.size + 1, signals: 0 }
    rows.set(id, row)
    row.signals += 1
    rowNumbers.push(row.number)
    nths.push(row.signals)
  }
  return { rows: [...rows.values()], rowNumbers, nths }
}

type KeyUsageMonth = { keyId: number; month: Month }

/** Every usage row of a browser key once, and for each signal the number of its row, from 1; null without such a key. */
function groupByKeyUsageRow(signals: SignalToRecord[]) {
  if (signals.every(({ browserKeyId }) => browserKeyId === null)) return null
  const rows = new Map<string, KeyUsageMonth & { number: number }>()
  const rowNumbers = signals.map(({ browserKeyId: keyId, month }) => {
    if (keyId === null) return null
    const id = `${keyId} ${month.name}`
    const row = rows.get(id) ?? { keyId, month, number: rows.size + 1 }
    rows.set(id, row)
    return row.number
  })
  return { rows: [...rows.values()], rowNumbers }
}

export type Usage = { used: number; limit: number }

/** The use and the limit of each organisation's month, in the order of the keys. */
export const readUsages = (sql: Sql, keys: UsageMonth[]): Promise<Usage[]> =>
  sql<Usage>`
    select used, monthly_limit as limit
    from read_usages(
      ${arrayOf(keys.map(({ organisationId }) => organisationId))}::text::bigint[],
      ${arrayOf(keys.map(({ month }) => `${month.name}-01`))}::text::date[]
    )
    order by number`

/** Deletes at most `maxRows` idempotency keys from before a time, and returns how many there were. */
export async function pruneIdempotencyKeys(sql: Sql, before: Date, maxRows: number): Promise<number> {
  const [row] = await sql<{ deleted: number }>`select prune_idempotency_keys(${before}, ${maxRows}) as deleted`
  return row?.deleted ?? 0
}
