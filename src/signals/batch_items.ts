import { type ApiError, invalid, ServiceError } from '../errors.ts'
import { monthOf } from '../lib/months.ts'
import { parseInstant } from '../lib/times.ts'
import { nextTurn } from '../lib/turns.ts'
import { createValidator } from '../lib/validate.ts'
import { closeList, closeObject, comma, cutMetadata, endOfToken, openList, openObject, quote } from './metadata.ts'
import type { Signal } from './record.ts'
import { BatchSignal, SignalBatch } from './schema.ts'

/** `closed` is the error of a signal of a closed month, unless it was recorded before with the same idempotency key. */
export type BatchItem = (Signal & { createdAt: Date; closed?: ApiError }) | { error: ApiError }

/** How far a client's clock may be ahead. Such a time is recorded as now, so that no signal is in the future. */
const clockSkewMs = 60_000
/** How long a month stays open after its end, so that a batch can be sent again across the turn of the month. */
const openForMs = 15 * 60_000
/** Parsing yields to other requests after this many characters. */
const turnLength = 256 * 1024

const validateBatch = createValidator(SignalBatch, 'The batch')
const validateItem = createValidator(BatchSignal, 'The signal')

/** Parses each signal of a batch separately. Throws `validation_error` for a body that is not a batch. */
export async function parseBatch(text: string, parsed: unknown, now: Date): Promise<BatchItem[]> {
  const { signals } = validateBatch(parsed)
  const texts = await cutItems(text, 'signals')
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
    const signal = { value, metadata: metadata === undefined ? null : cutMetadata(text), createdAt, idempotencyKey }
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

/** The JSON of each item in the list that is an object's member. Of a member given twice, the last one counts. */
async function cutItems(object: string, name: string): Promise<string[]> {
  let items: string[] = []
  let depth = 0
  let awaitsName = false
  let isWanted = false
  let start = 0
  let nextTurnAt = 0
  for (let at = 0; at < object.length; ) {
    if (at >= nextTurnAt) {
      await nextTurn()
      nextTurnAt = at + turnLength
    }
    const code = object.charCodeAt(at)
    const end = endOfToken(object, at, code)
    if (isWanted && depth === 2 && (code === comma || code === closeList)) {
      const item = object.slice(start, at).trim()
      if (item !== '') items.push(item)
    }
    if (code === openObject || code === openList) {
      depth += 1
      awaitsName = depth === 1
      if (isWanted && depth === 2) [items, start] = [[], end]
    } else if (code === closeObject || code === closeList) {
      depth -= 1
    } else if (code === comma) {
      awaitsName = depth === 1
      if (depth === 2) start = end
    } else if (code === quote && awaitsName) {
      isWanted = JSON.parse(object.slice(at, end)) === name
      awaitsName = false
    }
    at = end
  }
  return items
}
