import type { Sql } from '../db/client.ts'
import type { Month } from '../lib/months.ts'
import type { Usage, UsageMonth } from '../limit/admit.ts'

export type SignalToRecord = {
  organisationId: number
  promptId: number
  value: 'positive' | 'negative'
  /** The text of a JSON object, which becomes part of a larger text: nothing but what JSON.parse has accepted. */
  metadata: string | null
  createdAt: Date
  month: Month
  /** The caller's Idempotency-Key. */
  idempotencyKey: string | null
  /** The browser key that it is counted with: the one that it came with, or one that was rotated to that; else null. */
  browserKeyId: number | null
}

/** A signal to record, with the count that the gate returned for it, unless the gate was bypassed. */
export type AdmittedSignal = SignalToRecord & { taken?: number | undefined }

/** What became of a signal, with the count after it and the limit in force. */
export type WriteResult = {
  outcome: 'recorded' | 'refused' | 'replayed' | 'conflict'
  /** Null when refused. */
  id: number | null
  createdAt: Date
  used: number
  limit: number
  /** The count and the limit of the browser key that it came with, if that has a limit of its own. */
  ofKey?: Usage | undefined
  /** The month that the signal was sent in. */
  month: Month
}

/** What write_signals returns. The driver reads lists faster than a row for each signal. */
type Written = {
  write: number
  /** For each usage row: the count before this write, and the limit. */
  usages: [used: number, limit: number][]
  /** For each signal: its id, or null when it was not recorded. */
  ids: (number | null)[]
  /** For each key that was used before: position, id and time of the earlier signal, and whether it is the same. */
  replays: [position: number, id: number, at: string, isSame: boolean][] | null
  /** For each usage row of a browser key: the count before this write, and the limit, if any. */
  keyUsedBefore: number[] | null
  keyLimits: (number | null)[] | null
}

/** Writes are numbered, so that each result can be matched to its write. */
let writes = 0

/** `keysSentAt` is needed where a signal may be of an earlier time than the request that has its key. */
export async function writeSignals(sql: Sql, signals: SignalToRecord[], keysSentAt?: Date): Promise<WriteResult[]> {
  const { rows, rowNumbers } = groupByUsageRow(signals)
  const browserKeys = groupByKeyUsageRow(signals)
  const hasMetadata = signals.some(({ metadata }) => metadata !== null)
  const hasKeys = signals.some(({ idempotencyKey }) => idempotencyKey !== null)
  writes += 1
  const write = writes
  const [written] = await sql<Written>`
    select
      ${write}::bigint as write, to_json(usages) as usages, to_json(ids) as ids,
      replays, to_json(key_used_before) as "keyUsedBefore", to_json(key_limits) as "keyLimits"
    from write_signals(
      ${arrayOf(rows.map(({ organisationId }) => organisationId))}::text::bigint[],
      ${arrayOf(rows.map(({ month }) => `${month.name}-01`))}::text::date[],
      ${arrayOf(rows.map(({ asked }) => asked))}::text::integer[],
      ${arrayOf(rowNumbers)}::text::integer[],
      ${arrayOf(signals.map(({ promptId }) => promptId))}::text::bigint[],
      ${arrayOf(signals.map(({ value }) => value === 'positive'))}::text::boolean[],
      ${hasMetadata ? `[${signals.map(({ metadata }) => metadata ?? 'null').join(',')}]` : null}::text::jsonb,
      ${arrayOf(signals.map(({ createdAt }) => createdAt.getTime()))}::text::bigint[],
      ${hasKeys ? arrayOf(signals.map(({ idempotencyKey }) => quote(idempotencyKey))) : null}::text::text[],
      ${browserKeys && arrayOf(browserKeys.rows.map(({ keyId }) => keyId))}::text::bigint[],
      ${browserKeys && arrayOf(browserKeys.rows.map(({ month }) => `${month.name}-01`))}::text::date[],
      ${browserKeys && arrayOf(browserKeys.rowNumbers.map((number) => number ?? 'null'))}::text::integer[],
      ${keysSentAt?.toISOString() ?? null}::text::timestamptz
    )`
  // The result of another write would be shown to other organisations.
  if (written?.write !== write) throw new Error('the answer is not to what was asked')
  const recorded = toOutcomes(signals, rowNumbers, written)
  if (browserKeys) addKeyUsages(recorded, browserKeys.rowNumbers, written)
  return recorded
}

function toOutcomes(signals: SignalToRecord[], rowNumbers: number[], written: Written): WriteResult[] {
  const { usages, ids } = written
  const replays = new Map(written.replays?.map(([position, ...earlier]) => [position, earlier]))
  return signals.map(({ createdAt, month }, index) => {
    const usage = usages[Number(rowNumbers[index]) - 1] as (typeof usages)[number]
    const id = ids[index]
    if (id) usage[0] += 1
    const [used, limit] = usage
    if (id) return { outcome: 'recorded', id, createdAt, used, limit, month }
    const earlier = replays.get(index + 1)
    if (!earlier) return { outcome: 'refused', id: null, createdAt, used, limit, month }
    const [earlierId, at, isSame] = earlier
    const outcome = isSame ? 'replayed' : 'conflict'
    return { outcome, id: earlierId, createdAt: new Date(at), used, limit, month }
  })
}

/** Says of each signal that came with a limited browser key what the key had used after it. */
function addKeyUsages(recorded: WriteResult[], rowNumbers: (number | null)[], written: Written): void {
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

const quote = (text: string | null): string => (text === null ? 'null' : `"${text.replace(/["\\]/g, '\\$&')}"`)

/**
 * Every usage row once, by organisation, with the number of its signals; and for each signal the number of its row,
 * from 1.
 */
function groupByUsageRow(signals: SignalToRecord[]) {
  const rows = new Map<string, UsageMonth & { number: number; asked: number }>()
  const rowOfEach = signals.map((signal) => {
    const { organisationId, month } = signal
    const id = `${organisationId} ${month.name}`
    const row = rows.get(id) ?? { organisationId, month, number: 0, asked: 0 }
    rows.set(id, row)
    row.asked += 1
    return row
  })
  const sorted = [...rows.values()].sort((one, other) => one.organisationId - other.organisationId)
  sorted.forEach((row, index) => {
    row.number = index + 1
  })
  return { rows: sorted, rowNumbers: rowOfEach.map(({ number }) => number) }
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

/** Deletes at most `maxRows` idempotency keys from before a time, and returns how many there were. */
export async function pruneIdempotencyKeys(sql: Sql, before: Date, maxRows: number): Promise<number> {
  const [row] = await sql<{ deleted: number }>`select prune_idempotency_keys(${before}, ${maxRows}) as deleted`
  return row?.deleted ?? 0
}
