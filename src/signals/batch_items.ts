import { type ApiError, invalid, ServiceError } from '../errors.ts'
import { monthOf } from '../lib/months.ts'
import { parseInstant } from '../lib/times.ts'
import { nextTurn } from '../lib/turns.ts'
import { createValidator } from '../lib/validate.ts'
import { keepNumbers, writeMetadata } from './metadata.ts'
import type { Signal } from './record.ts'
import { BatchSignal, SignalBatch } from './schema.ts'

/** `closed` is the error of a signal of a closed month, unless it was recorded before with the same idempotency key. */
export type BatchItem = (Signal & { createdAt: Date; closed?: ApiError }) | { error: ApiError }

/** How far a client's clock may be ahead. Such a time is recorded as now, so that no signal is in the future. */
const clockSkewMs = 60_000
/** How long a month stays open after its end, so that a batch can be sent again across the turn of the month. */
const openForMs = 15 * 60_000
/** Parsing yields to other requests after this many signals: 16 KiB of metadata each take a few milliseconds together. */
const signalsPerTurn = 50

const validateBatch = createValidator(SignalBatch, 'The batch')
const validateItem = createValidator(BatchSignal, 'The signal')

/** Parses each signal of a batch separately. Throws `validation_error` for a body that is not a batch. */
export async function parseBatch(text: string, parsed: unknown, now: Date): Promise<BatchItem[]> {
  const { signals } = validateBatch(parsed)
  const exact = (keepNumbers(text, parsed) as SignalBatch).signals
  const items: BatchItem[] = []
  for (const [index, signal] of signals.entries()) {
    if (index % signalsPerTurn === 0) await nextTurn()
    items.push(parseItem(signal, exact[index], now))
  }
  return items
}

/** `exact` is the same signal with the numbers of its metadata as they were sent. */
function parseItem(given: unknown, exact: unknown, now: Date): BatchItem {
  try {
    const { value, created_at: time, idempotency_key: idempotencyKey = null } = validateItem(given)
    const { metadata } = exact as BatchSignal
    const createdAt = time === undefined ? now : parseCreatedAt(time, now)
    const signal = { value, metadata: metadata ? writeMetadata(metadata) : null, createdAt, idempotencyKey }
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

const wrongTime = () =>
  invalid('The signal is not valid.', [
    {
      path: '/created_at',
      message:
        'must be an ISO 8601 time with its zone, not in the future and within the current month (UTC) or, in its first 15 minutes, the one before',
    },
  ])
