import type { Sql } from '../db/client.ts'
import type { Month } from '../lib/months.ts'
import type { Usage } from '../limit/schema.ts'
import type { Prompt } from '../prompts/find.ts'

export type SignalToWrite = {
  prompt: Prompt
  value: 'positive' | 'negative'
  /** JSON that JSON.parse has accepted: it becomes part of a larger JSON text. */
  metadata: string | null
  createdAt: Date
  month: Month
  idempotencyKey: string | null
  /** The browser key whose count and limit the signal shares; null for a signal without one. */
  browserKeyId: number | null
}

/** The outcome of a signal, with the organisation's count after it. */
export type WriteResult = Usage & {
  /**
   * Replayed: recorded before with the same idempotency key. Conflict: that key belongs to another signal. Missing: a
   * failover has lost the prompt.
   */
  outcome: 'recorded' | 'refused' | 'replayed' | 'conflict' | 'missing'
  /** Null when refused or missing. */
  id: number | null
  /** The time of the earlier signal when replayed. */
  createdAt: Date
  month: Month
  /** The count and the limit of the browser key, if it has a limit. */
  keyUsage: Usage | null
}

/** The result of write_signals: lists by signal, by month and by the month of a browser key. */
type Written = {
  write: number
  /** Null for a signal that was recorded, and null as a whole when all were. */
  outcomes: (WriteResult['outcome'] | null)[] | null
  ids: (number | null)[]
  earlierTimes: (number | null)[] | null
  usedBefore: number[]
  monthLimits: number[]
  keyUsedBefore: number[] | null
  browserKeyLimits: (number | null)[] | null
}

/** Writes are numbered, so that a result can be matched to its write. */
let writes = 0

/** Created once, because the driver never forgets the text of a statement. */
let texts: { plain: TemplateStringsArray; early: TemplateStringsArray } | undefined

type WriteOptions = {
  /** Needed where a signal may be older than the request that brought its idempotency key. */
  keysSentAt?: Date
  /** Releases the locks before the commit is durable, and resolves once it is. Not possible in a transaction. */
  commitsEarly?: boolean
}

export async function writeSignals(
  sql: Sql,
  signals: SignalToWrite[],
  { keysSentAt, commitsEarly = false }: WriteOptions = {},
): Promise<WriteResult[]> {
  const months = numberMonths(signals, ({ prompt }) => prompt.organisationId)
  // The finder returns the same object for the same prompt, so that most batches have few.
  const prompts = [...new Set(signals.map(({ prompt }) => prompt))]
  const promptNumbers = new Map(prompts.map((prompt, index) => [prompt, index + 1]))
  const hasBrowserKeys = signals.some(({ browserKeyId }) => browserKeyId !== null)
  const browserKeys = hasBrowserKeys ? numberMonths(signals, ({ browserKeyId }) => browserKeyId) : null
  const hasMetadata = signals.some(({ metadata }) => metadata !== null)
  const hasIdempotencyKeys = signals.some(({ idempotencyKey }) => idempotencyKey !== null)
  writes += 1
  const write = writes
  const { text, values } = statement`
    write_signals(
      ${toArray(months.owners)}::text::bigint[],
      ${toArray(months.dates)}::text::date[],
      ${toArray(months.counts)}::text::integer[],
      ${toArray(prompts.map(({ id }) => id))}::text::bigint[],
      ${toArray(prompts.map(({ organisationId }) => organisationId))}::text::bigint[],
      ${toArray(prompts.map(({ publicId }) => publicId))}::text::text[],
      ${toArray(months.numbers)}::text::integer[],
      ${toArray(signals.map(({ prompt }) => promptNumbers.get(prompt)))}::text::integer[],
      ${toArray(signals.map(({ value }) => value === 'positive'))}::text::boolean[],
      ${hasMetadata ? `[${signals.map(({ metadata }) => metadata ?? 'null').join(',')}]` : null}::text::jsonb,
      ${toArray(signals.map(({ createdAt }) => createdAt.getTime()))}::text::bigint[],
      ${hasIdempotencyKeys ? toArray(signals.map(({ idempotencyKey }) => quote(idempotencyKey))) : null}::text::text[],
      ${keysSentAt?.toISOString() ?? null}::text::timestamptz,
      ${browserKeys && toArray(browserKeys.organisations)}::text::bigint[],
      ${browserKeys && toArray(browserKeys.owners)}::text::bigint[],
      ${browserKeys && toArray(browserKeys.dates)}::text::date[],
      ${browserKeys && toArray(browserKeys.numbers)}::text::integer[],
      ${write}::bigint
    )`
  texts ??= { plain: around('select', text, 'as result'), early: around('call commit_early(', text, ')') }
  const [row] = await sql<{ result: Written }>(commitsEarly ? texts.early : texts.plain, ...values)
  // The result of another write would show one organisation's signals to another.
  const written = row?.result
  if (written?.write !== write) throw new Error('response does not match request')
  const { outcomes, ids, earlierTimes, usedBefore, monthLimits, keyUsedBefore, browserKeyLimits } = written
  return signals.map(({ createdAt, month }, index) => {
    const outcome = outcomes?.[index] ?? 'recorded'
    const earlierTime = earlierTimes?.[index]
    const monthIndex = Number(months.numbers[index]) - 1
    const keyIndex = Number(browserKeys?.numbers[index]) - 1
    const keyLimit = browserKeyLimits?.[keyIndex]
    return {
      outcome,
      id: ids[index] as number | null,
      createdAt: earlierTime ? new Date(earlierTime) : createdAt,
      month,
      used: countUp(usedBefore, monthIndex, outcome),
      limit: monthLimits[monthIndex] as number,
      keyUsage:
        keyLimit == null ? null : { used: countUp(keyUsedBefore as number[], keyIndex, outcome), limit: keyLimit },
    }
  })
}

/** Counts a signal if it was recorded. Returns the count after it. */
function countUp(counts: number[], index: number, outcome: WriteResult['outcome']): number {
  const count = (counts[index] as number) + (outcome === 'recorded' ? 1 : 0)
  counts[index] = count
  return count
}

const statement = (text: TemplateStringsArray, ...values: unknown[]) => ({ text, values })

/** The same parameters in a longer statement. */
function around(before: string, text: TemplateStringsArray, after: string): TemplateStringsArray {
  const parts = [...text]
  parts[0] = `${before} ${parts[0]}`
  parts[parts.length - 1] += ` ${after}`
  return Object.assign(parts, { raw: parts })
}

export type UsedKey = { organisationId: number; key: string }

/** The keys among these that signals were recorded with. Each belongs to one organisation. */
export async function findUsedKeys(sql: Sql, keys: UsedKey[]): Promise<Map<string, true>> {
  const rows = await sql<{ key: string }>`
    select k.key
    from unnest(
      ${toArray(keys.map(({ organisationId }) => organisationId))}::text::bigint[],
      ${keys.map(({ key }) => key)}::text[]
    ) wanted (organisation_id, key)
    join idempotency_keys k on k.organisation_id = wanted.organisation_id and k.key = wanted.key`
  return new Map(rows.map(({ key }) => [key, true]))
}

/** Writes values that need no quotes as a Postgres array, which is faster than the driver's own quoting. */
const toArray = (values: unknown[]): string => `{${values.join(',')}}`

const quote = (text: string | null): string => (text === null ? 'null' : `"${text.replace(/["\\]/g, '\\$&')}"`)

/**
 * The months that the signals count towards, of the organisations or keys that own them: each once, in the order of their
 * owners, with the number of its signals; and for each signal the number of its month, from 1.
 */
function numberMonths(signals: SignalToWrite[], ownerOf: (signal: SignalToWrite) => number | null) {
  const months = new Map<
    string,
    { owner: number; organisationId: number; date: string; number: number; count: number }
  >()
  const monthOfEach = signals.map((signal) => {
    const owner = ownerOf(signal)
    if (owner === null) return null
    const id = `${owner} ${signal.month.name}`
    const { organisationId } = signal.prompt
    const month = months.get(id) ?? { owner, organisationId, date: signal.month.date, number: 0, count: 0 }
    month.count += 1
    months.set(id, month)
    return month
  })
  const sorted = [...months.values()].sort((one, other) => one.owner - other.owner)
  sorted.forEach((month, index) => {
    month.number = index + 1
  })
  return {
    owners: sorted.map(({ owner }) => owner),
    organisations: sorted.map(({ organisationId }) => organisationId),
    counts: sorted.map(({ count }) => count),
    dates: sorted.map(({ date }) => date),
    numbers: monthOfEach.map((month) => month?.number ?? 'null'),
  }
}
