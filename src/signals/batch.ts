import type { Sql } from '../db/client.ts'
import { untilUnlocked } from '../db/until_unlocked.ts'
import { type ApiError, invalid, notFound, ServiceError } from '../errors.ts'
import { nextTurn } from '../lib/concurrency.ts'
import { boundsOn, invalidBody, isBounded, parseJson, splitLists } from '../lib/json.ts'
import { closedMonth, type Month, monthOf } from '../lib/months.ts'
import { minuteMs, parseInstant } from '../lib/times.ts'
import { createValidator } from '../lib/validate.ts'
import { monthlyLimitReached } from '../limit/admit.ts'
import type { Usage } from '../limit/schema.ts'
import type { Prompt } from '../prompts/find.ts'
import { keepNumbers, maxSignalValues, writeMetadata } from './metadata.ts'
import { applyResults, type Recording, refuse, type Signal } from './record.ts'
import { BatchSignal, SignalBatch } from './schema.ts'
import { type SignalToWrite, type WriteResult, writeSignals } from './store.ts'

/** `closed` is the error of a signal of a closed month, unless it was recorded before with the same idempotency key. */
type BatchItem = (Signal & { createdAt: Date; closed?: ApiError }) | { error: ApiError }

/** How far a client's clock may be ahead. Such a time is recorded as now, so that no signal is in the future. */
const clockSkewMs = minuteMs
/** How long a month stays open after its end, so that a batch can be sent again across the turn of the month. */
const openForMs = 15 * minuteMs
/** Parsing yields to other requests after this many characters, which take about a millisecond. */
const charactersPerTurn = 16 * 1024
/** Far more than a batch may have. */
const maxSplit = 10_000

const validateBatch = createValidator(SignalBatch, 'The batch')
const validateItem = createValidator(BatchSignal, 'The signal')

/** Parses each signal of a batch separately. Throws `validation_error` for a body that is not a batch. */
export async function parseBatch(text: string, now: Date): Promise<BatchItem[]> {
  const split = splitLists(text, maxSplit)
  if (!split) throw invalidBody(boundsOn(maxSplit))
  const { signals } = validateBatch(parseJson(split.outer))
  const items: BatchItem[] = []
  let parsed = charactersPerTurn
  for (const place of signals as number[]) {
    const item = split.elements[place] as string
    parsed += item.length
    if (parsed > charactersPerTurn) {
      await nextTurn()
      parsed = item.length
    }
    items.push(parseItem(item, now))
  }
  return items
}

function parseItem(text: string, now: Date): BatchItem {
  if (!isBounded(text, maxSignalValues)) return { error: tooManyValues() }
  const given = parseJson(text)
  try {
    const { value, subject, created_at: time, idempotency_key: idempotencyKey = null } = validateItem(given)
    const { metadata } = keepNumbers(text, given) as BatchSignal
    const createdAt = time === undefined ? now : parseCreatedAt(time, now)
    const signal = { value, metadata: metadata ? writeMetadata(metadata) : null, createdAt, idempotencyKey, subject }
    if (isOpen(createdAt, now)) return signal
    return idempotencyKey === null ? { error: wrongTime() } : { ...signal, closed: wrongTime() }
  } catch (error) {
    if (error instanceof ServiceError) return { error }
    throw error
  }
}

function parseCreatedAt(text: string, now: Date): Date {
  const time = parseInstant(text)
  if (!time || time.getTime() - now.getTime() > clockSkewMs) throw wrongTime()
  return time > now ? now : time
}

/** A signal counts towards the month of its time, so it is accepted only while that month is open. */
const isOpen = (time: Date, now: Date): boolean => monthOf(time).resetsAtSeconds * 1_000 + openForMs >= now.getTime()

const tooManyValues = () => invalid('The signal is not valid.', [{ path: '', message: boundsOn(maxSignalValues) }])

const wrongTime = () =>
  invalid('The signal is not valid.', [
    {
      path: '/created_at',
      message:
        'must be an ISO 8601 time with its zone, not in the future and within the current month (UTC) or, in its first 15 minutes, the one before',
    },
  ])

type Recorded = Pick<WriteResult, 'createdAt' | 'isReplacement'> & { id: number; isReplayed: boolean }

export type BatchResult = Recorded | { error: ApiError }

/** The results in the order of the signals, and the usage of the current month; undefined when no signal was of it. */
type BatchOutcome = { results: BatchResult[]; usage: (Usage & { month: Month }) | undefined }

export type BatchRecorder = ReturnType<typeof createBatchRecorder>

export function createBatchRecorder(recording: Recording) {
  const { db, admission, observe } = recording
  async function admitAndWrite(
    { organisationId }: Prompt,
    month: Month,
    signals: SignalToWrite[],
    now: Date,
    deadline: number,
  ): Promise<WriteResult[]> {
    // Skip admission with idempotency keys and subjects: what does not count must succeed even when the month is full.
    const mustAdmit = signals.every(
      (signal) => signal.idempotencyKey === null && signal.subject === undefined && signal.month === month,
    )
    const full = mustAdmit ? await admission.admit(organisationId, month) : undefined
    if (full) return signals.map((signal) => refuse(signal, full, observe))
    const addedAt = performance.now()
    // Batches of one organisation need the same lock, so they wait for each other without a connection.
    const permitRequest = { tenant: organisationId, key: `signals of ${organisationId}`, deadline }
    const write = (sql: Sql) => {
      observe?.batchStarted(signals.length, performance.now() - addedAt)
      return writeSignals(sql, signals, { keysSentAt: now })
    }
    // A separate transaction delays no other organisation.
    const results = await untilUnlocked(() => db.transaction(write, permitRequest))
    applyResults(recording, signals, results)
    // A batch is of one prompt.
    if (results[0]?.outcome === 'missing') throw notFound()
    return results
  }

  /**
   * Records the signals in order until their months are full, in one transaction. If it cannot be committed before
   * `deadline`, on the clock of `performance.now()`, nothing is written.
   */
  return async (prompt: Prompt, items: BatchItem[], now: Date, deadline: number): Promise<BatchOutcome> => {
    const month = monthOf(now)
    const { distinct, positions } = deduplicate(items)
    const signals = distinct.map((item) => ({ ...item, prompt, browserKey: null, month: monthToCount(item, month) }))
    const written = signals.length > 0 ? await admitAndWrite(prompt, month, signals, now, deadline) : []
    const results = positions.map((position) => {
      if ('error' in position) return position
      const { index, isDuplicate } = position
      return toResult(written[index] as WriteResult, isDuplicate, distinct[index]?.closed)
    })
    return { results, usage: written.findLast((result) => result.month === month) }
  }
}

function monthToCount({ createdAt, closed }: ValidItem, current: Month): Month {
  if (closed) return closedMonth
  const month = monthOf(createdAt)
  return month.name === current.name ? current : month
}

type ValidItem = Exclude<BatchItem, { error: ApiError }>

/** The index of an item's distinct signal, or the error of an invalid item. */
type Position = { index: number; isDuplicate: boolean } | { error: ApiError }

/**
 * A key must not be written twice in one transaction, so an item with the key of an earlier item shares its outcome. Their
 * metadata must be the same text, not only the same JSON: no client sends one signal in two ways in one batch.
 */
function deduplicate(items: BatchItem[]): { distinct: ValidItem[]; positions: Position[] } {
  const distinct: ValidItem[] = []
  const indexOfKey = new Map<string, number>()
  const positions = items.map((item): Position => {
    if ('error' in item) return item
    const { idempotencyKey: key, value, metadata, subject } = item
    const index = key === null ? undefined : indexOfKey.get(key)
    if (index !== undefined) {
      const first = distinct[index] as ValidItem
      const isSame = first.value === value && first.metadata === metadata && first.subject === subject
      return isSame ? { index, isDuplicate: true } : { error: conflict() }
    }
    if (key !== null) indexOfKey.set(key, distinct.length)
    distinct.push(item)
    return { index: distinct.length - 1, isDuplicate: false }
  })
  return { distinct, positions }
}

function toResult(result: WriteResult, isDuplicate: boolean, closed: ApiError | undefined): BatchResult {
  const { outcome, isReplacement, id, createdAt, month } = result
  if (outcome === 'refused') return { error: closed ?? monthlyLimitReached(result, month) }
  if (outcome === 'conflict') return { error: conflict() }
  return { id: id as number, createdAt, isReplacement, isReplayed: isDuplicate || outcome === 'replayed' }
}

const conflict = () =>
  invalid('The idempotency_key was used for another signal.', [
    {
      path: '/idempotency_key',
      message: 'must be new, or come with the same prompt, value, metadata and subject as before',
    },
  ])
