import { type ApiError, invalid, ServiceError } from '../errors.ts'
import { monthOf } from '../lib/months.ts'
import { parseInstant } from '../lib/times.ts'
import { nextTurn } from '../lib/turns.ts'
import { createValidator } from '../lib/validate.ts'
import { cutItems } from './json_text.ts'
import { parseMetadata } from './metadata.ts'
import type { Signal } from './record.ts'
import { BatchSignal, SignalBatch } from './schema_batch.ts'

/** A signal of a batch that is well-formed, or the error that it is answered with. */
export type BatchItem = (Signal & { createdAt: Date }) | { error: ApiError }

/** A caller's clock may be ahead of this one by this much: such a time is taken as now, so that none is in the future. */
const clockSkewMs = 60_000

/** Other requests have their turn after so many characters of a batch. */
const turnLength = 256 * 1024

const validateBatch = createValidator(SignalBatch, 'The batch')
const validateItem = createValidator(BatchSignal, 'The signal')

/** Parses each signal of a batch by itself. Throws `validation_error` for what is no batch at all. */
export async function parseBatch(text: string, parsed: unknown, now: Date): Promise<BatchItem[]> {
  const { signals } = validateBatch(parsed)
  const texts = cutItems(text, 'signals')
  const items: BatchItem[] = []
  let length = 0
  for (const [index, signal] of signals.entries()) {
    const own = texts[index] as string
    items.push(parseItem(signal, own, now))
    length += own.length
    if (length < turnLength) continue
    await nextTurn()
    length = 0
  }
  return items
}

function parseItem(given: unknown, text: string, now: Date): BatchItem {
  try {
    const { value, metadata, created_at: time, idempotency_key: idempotencyKey = null } = validateItem(given)
    const createdAt = time === undefined ? now : parseCreatedAt(time, now)
    const kept = metadata === undefined ? null : parseMetadata(text)
    return { value, metadata: kept, createdAt, idempotencyKey }
  } catch (error) {
    if (error instanceof ServiceError) return { error }
    throw error
  }
}

/** The limit counts by the month of a signal's time, and only the current month can still be refused. */
function parseCreatedAt(text: string, now: Date): Date {
  const time = parseInstant(text)
  const isAhead = time && time > now && time.getTime() - now.getTime() <= clockSkewMs
  if (isAhead) return now
  if (time && time <= now && monthOf(time).name === monthOf(now).name) return time
  throw invalid('The signal is not valid.', [
    {
      path: '/created_at',
      message: 'must be an ISO 8601 time with its zone, within the current month (UTC) and not in the future',
    },
  ])
}
