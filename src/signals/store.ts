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
  browserKey: BrowserKey | null
  /** What it is about: another signal of the prompt with the same subject replaces it. */
  subject?: string | null | undefined
}

/** The key that a signal of a page is counted with, and the limit of the key that it came with. */
export type BrowserKey = { id: number; monthlyLimit: number | null }

/** The outcome of a signal, with the organisation's count after it. */
export type WriteResult = Usage & {
  /**
   * Replaced: it changed an earlier signal with its subject. Replayed: recorded before with the same idempotency key.
   * Conflict: that key belongs to another signal. Missing: a failover has lost the prompt.
   */
  outcome: 'recorded' | 'replaced' | 'refused' | 'replayed' | 'conflict' | 'missing'
  /** Whether it replaced one, or is a replay of one that did. */
  isReplacement: boolean
  /** Null when refused or missing. */
  id: number | null
  /** The time of the earlier signal when replayed or replaced. */
  createdAt: Date
  month: Month
  /** The count and the limit of the browser key, if it has a limit. */
  keyUsage: Usage | null
}

/** The result of write_signals: lists by signal, by month and by the month of a browser key. */
type Written = {
  write: number
  /** The id of the first signal, if it was recorded; the others follow in their order. */
  firstId: number
  /** Null for a signal that was recorded, and null as a whole when all were. */
  outcomes: (WriteResult['outcome'] | 'replayed_replacement' | null)[] | null
  /** Of the signals that were recorded before; null as a whole when no signal has an idempotency key or a subject. */
  earlierIds: (number | null)[] | null
  earlierTimes: (number | null)[] | null
  usedBefore: number[]
  monthLimits: number[]
  keyUsedBefore: number[] | null
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
  // The finder returns the same object for the same prompt, so a batch usually has few.
  const prompts = [...new Set(signals.map(({ prompt }) => prompt))]
  const promptNumbers = new Map(prompts.map((prompt, index) => [prompt, index + 1]))
  const hasBrowserKeys = signals.some(({ browserKey }) => browserKey !== null)
  const browserKeys = hasBrowserKeys ? numberMonths(signals, ({ browserKey }) => browserKey?.id ?? null) : null
  const keyLimits = hasBrowserKeys ? toArray(signals.map(({ browserKey }) => browserKey?.monthlyLimit ?? 'null')) : null
  const hasMetadata = signals.some(({ metadata }) => metadata !== null)
  const metadataList = hasMetadata ? `[${signals.map(({ metadata }) => metadata ?? 'null').join(',')}]` : null
  const hasIdempotencyKeys = signals.some(({ idempotencyKey }) => idempotencyKey !== null)
  const idempotencyKeys = hasIdempotencyKeys
    ? toArray(signals.map(({ idempotencyKey }) => quote(idempotencyKey)))
    : null
  const votes = signals.some(isVote) ? numberVotes(signals) : null
  writes += 1
  const write = writes
  const { text, values } = statement`
    write_signals(
      organisation_ids => ${toArray(months.ids)}::text::bigint[],
      months => ${toArray(months.dates)}::text::date[],
      signal_counts => ${toArray(months.counts)}::text::integer[],
      prompt_ids => ${toArray(prompts.map(({ id }) => id))}::text::bigint[],
      prompt_organisation_ids => ${toArray(prompts.map(({ organisationId }) => organisationId))}::text::bigint[],
      prompt_public_ids => ${toArray(prompts.map(({ publicId }) => publicId))}::text::text[],
      month_numbers => ${toArray(months.numbers)}::text::integer[],
      prompt_numbers => ${toArray(signals.map(({ prompt }) => promptNumbers.get(prompt)))}::text::integer[],
      are_positive => ${toArray(signals.map(({ value }) => value === 'positive'))}::text::boolean[],
      metadata_list => ${metadataList}::text::jsonb,
      created_ats => ${toArray(signals.map(({ createdAt }) => createdAt.getTime()))}::text::bigint[],
      idempotency_key_list => ${idempotencyKeys}::text::text[],
      keys_sent_at => ${keysSentAt?.toISOString() ?? null}::text::timestamptz,
      browser_key_organisation_ids => ${browserKeys && toArray(browserKeys.organisationIds)}::text::bigint[],
      browser_key_ids => ${browserKeys && toArray(browserKeys.ids)}::text::bigint[],
      browser_key_months => ${browserKeys && toArray(browserKeys.dates)}::text::date[],
      browser_key_numbers => ${browserKeys && toArray(browserKeys.numbers)}::text::integer[],
      browser_key_limits => ${keyLimits}::text::integer[],
      votes => ${votes && votesToJson(votes.distinct)}::text::jsonb,
      vote_numbers => ${votes && toArray(votes.numbers)}::text::integer[],
      write_number => ${write}::bigint
    )`
  // Two statements with the same parameters.
  texts ??= { plain: wrapText('select', text, 'as result'), early: wrapText('call commit_early(', text, ')') }
  const [row] = await sql<{ result: Written }>(commitsEarly ? texts.early : texts.plain, ...values)
  // The result of another write would show one organisation's signals to another.
  const written = row?.result
  if (written?.write !== write) throw new Error('response does not match request')
  const { firstId, outcomes, earlierIds, earlierTimes, usedBefore, monthLimits, keyUsedBefore } = written
  return signals.map(({ createdAt, month, browserKey }, index) => {
    const found = outcomes?.[index] ?? 'recorded'
    const outcome = found === 'replayed_replacement' ? 'replayed' : found
    const earlierTime = earlierTimes?.[index]
    const monthIndex = Number(months.numbers[index]) - 1
    const keyUsed = browserKey && countUp(keyUsedBefore as number[], Number(browserKeys?.numbers[index]) - 1, outcome)
    return {
      outcome,
      isReplacement: found === 'replaced' || found === 'replayed_replacement',
      id: outcome === 'recorded' ? firstId + index : (earlierIds?.[index] ?? null),
      createdAt: earlierTime ? new Date(earlierTime) : createdAt,
      month,
      used: countUp(usedBefore, monthIndex, outcome),
      limit: monthLimits[monthIndex] as number,
      keyUsage: browserKey?.monthlyLimit == null ? null : { used: keyUsed as number, limit: browserKey.monthlyLimit },
    }
  })
}

/** Counts a signal if it was recorded. Returns the count after it. */
function countUp(runningCounts: number[], index: number, outcome: WriteResult['outcome']): number {
  const count = (runningCounts[index] as number) + (outcome === 'recorded' ? 1 : 0)
  runningCounts[index] = count
  return count
}

export type Vote = Pick<SignalToWrite, 'prompt' | 'createdAt'> & { subject: string }

export const isVote = <T extends { subject?: string | null | undefined }>(one: T): one is T & { subject: string } =>
  one.subject != null

export const idOfVote = ({ prompt, subject }: Pick<Vote, 'prompt' | 'subject'>): string => `${prompt.id} ${subject}`

/** As find_votes takes them. */
const votesToJson = (votes: Vote[]): string =>
  JSON.stringify(
    votes.map(({ prompt, subject, createdAt: at }) => {
      return { organisation_id: prompt.organisationId, prompt_id: prompt.id, subject, at }
    }),
  )

/** The signals that these would replace, by idOfVote. */
export async function findVotes(sql: Sql, votes: Vote[]): Promise<Map<string, { id: number; createdAt: Date }>> {
  const rows = await sql<{ number: number; id: number; createdAt: Date }>`
    select v.number, v.signal_id as id, v.created_at as "createdAt"
    from find_votes(${votesToJson(votes)}::text::jsonb) v
    where v.signal_id is not null`
  return new Map(rows.map(({ number, ...found }) => [idOfVote(votes[number - 1] as Vote), found]))
}

const statement = (text: TemplateStringsArray, ...values: unknown[]) => ({ text, values })

function wrapText(before: string, text: TemplateStringsArray, after: string): TemplateStringsArray {
  const parts = [...text]
  parts[0] = `${before} ${parts[0]}`
  parts[parts.length - 1] += ` ${after}`
  return Object.assign(parts, { raw: parts })
}

export type OwnedIdempotencyKey = { organisationId: number; key: string }

export const idOfKey = ({ organisationId, key }: OwnedIdempotencyKey): string => `${organisationId} ${key}`

/** The keys among these that signals were recorded with, by idOfKey. */
export async function findUsedKeys(sql: Sql, keys: OwnedIdempotencyKey[]): Promise<Map<string, true>> {
  const rows = await sql<OwnedIdempotencyKey>`
    select k.organisation_id as "organisationId", k.key
    from unnest(
      ${toArray(keys.map(({ organisationId }) => organisationId))}::text::bigint[],
      ${keys.map(({ key }) => key)}::text[]
    ) wanted (organisation_id, key)
    join idempotency_keys k on k.organisation_id = wanted.organisation_id and k.key = wanted.key`
  return new Map(rows.map((row) => [idOfKey(row), true]))
}

/** Writes values that need no quotes as a Postgres array, which is faster than the driver's own quoting. */
const toArray = (values: unknown[]): string => `{${values.join(',')}}`

const quote = (text: string | null): string => (text === null ? 'null' : `"${text.replace(/["\\]/g, '\\$&')}"`)

/**
 * Lists each month of each organisation, or key, once, in the order of the ids, with the number of its signals. `numbers`
 * has the position of each signal's month, from 1.
 */
function numberMonths(signals: SignalToWrite[], idOf: (signal: SignalToWrite) => number | null) {
  type NumberedMonth = { id: number; organisationId: number; date: string; number: number; count: number }
  const months = new Map<string, NumberedMonth>()
  const monthOfEach = signals.map((signal) => {
    const id = idOf(signal)
    if (id === null) return null
    const name = `${id} ${signal.month.name}`
    const { organisationId } = signal.prompt
    const month = months.get(name) ?? { id, organisationId, date: signal.month.date, number: 0, count: 0 }
    month.count += 1
    months.set(name, month)
    return month
  })
  const sorted = [...months.values()].sort((one, other) => one.id - other.id)
  sorted.forEach((month, index) => {
    month.number = index + 1
  })
  return {
    ids: sorted.map(({ id }) => id),
    organisationIds: sorted.map(({ organisationId }) => organisationId),
    counts: sorted.map(({ count }) => count),
    dates: sorted.map(({ date }) => date),
    numbers: monthOfEach.map((month) => month?.number ?? 'null'),
  }
}

/** Lists each subject of a prompt once. `numbers` has the position of each signal's subject, from 1. */
function numberVotes(signals: SignalToWrite[]) {
  const distinct: Vote[] = []
  const numberOf = new Map<string, number>()
  const numbers = signals.map((signal) => {
    if (!isVote(signal)) return 'null'
    const number = numberOf.get(idOfVote(signal)) ?? distinct.push(signal)
    numberOf.set(idOfVote(signal), number)
    // The latest time: one of a closed month would find what nobody can replace any more, and miss the vote of today.
    if (signal.createdAt > (distinct[number - 1] as Vote).createdAt) distinct[number - 1] = signal
    return number
  })
  return { distinct, numbers }
}
