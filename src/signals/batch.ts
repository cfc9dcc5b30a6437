import { classifyError } from '../db/errors.ts'
import { type ApiError, invalid, notFound } from '../errors.ts'
import { closedMonth, type Month, monthOf } from '../lib/months.ts'
import { createSemaphore, type PermitRequest } from '../lib/semaphore.ts'
import { cutSteps } from '../lib/steps.ts'
import { monthlyLimitReached } from '../limit/admit.ts'
import type { Usage } from '../limit/schema.ts'
import type { Prompt } from '../prompts/find.ts'
import type { BatchItem } from './batch_items.ts'
import { applyResults, type Recording, refuse } from './record.ts'
import { type SignalToWrite, type WriteResult, writeSignals } from './store.ts'

export type BatchResult = { id: number; createdAt: Date; isReplayed: boolean } | { error: ApiError }

/** The results in the order of the signals, and the usage of the current month; undefined when no signal was of it. */
type BatchOutcome = { results: BatchResult[]; usage: (Usage & { month: Month }) | undefined }

/** The embedded engine does nothing else during a step, so each is short. */
const maxStepWeight = 256 * 1024
/** In characters of metadata: about 100 signals without any take as long as a step of the longest. */
const weightOf = ({ metadata }: SignalToWrite): number => 2_600 + (metadata?.length ?? 0)

export type BatchRecorder = ReturnType<typeof createBatchRecorder>

export function createBatchRecorder(recording: Recording) {
  const { db, admission, observe } = recording
  // Batches of one organisation need the same lock, so they wait for each other here, without a connection.
  const inTurn = createSemaphore({ maxWaitingPerTenant: 100 })

  async function admitAndWrite(
    { organisationId }: Prompt,
    month: Month,
    signals: SignalToWrite[],
    now: Date,
    deadline: number,
  ): Promise<WriteResult[]> {
    // Skip admission with idempotency keys: a replay does not count, and must succeed even when the month is full.
    const mustAdmit = signals.every((signal) => signal.idempotencyKey === null && signal.month === month)
    const full = mustAdmit ? await admission.admit(organisationId, month) : undefined
    if (full) return signals.map((signal) => refuse(signal, full, observe))
    const addedAt = performance.now()
    const steps = db.isEmbedded ? cutSteps(signals, weightOf, maxStepWeight) : [signals]
    const writeAll = async () => {
      const results: WriteResult[] = []
      for (const step of steps) results.push(...(await write(step, now, { tenant: organisationId, deadline }, addedAt)))
      return results
    }
    return inTurn(writeAll, { tenant: organisationId, key: organisationId, deadline })
  }

  async function write(signals: SignalToWrite[], now: Date, permitRequest: PermitRequest, addedAt: number) {
    for (;;) {
      try {
        // A separate transaction delays no other organisation.
        const results = await db.transaction(async (sql) => {
          observe?.batchStarted(signals.length, performance.now() - addedAt)
          return writeSignals(sql, signals, { keysSentAt: now })
        }, permitRequest)
        applyResults(recording, signals, results)
        // A batch is of one prompt.
        if (results[0]?.outcome === 'missing') throw notFound()
        return results
      } catch (error) {
        // Retry until the deadline while another transaction holds the organisation's lock.
        if (classifyError(error) !== 'lock_timeout') throw error
      }
    }
  }

  /**
   * Records the signals in order until their months are full: in one transaction or, on the embedded engine, in short steps.
   * What cannot be written before `deadline`, on the clock of `performance.now()`, is never written.
   */
  return async (prompt: Prompt, items: BatchItem[], now: Date, deadline: number): Promise<BatchOutcome> => {
    const month = monthOf(now)
    const { distinct, positions } = deduplicate(items)
    const signals = distinct.map((item) => ({ ...item, prompt, browserKeyId: null, month: monthToCount(item, month) }))
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
    const { idempotencyKey: key, value, metadata } = item
    const index = key === null ? undefined : indexOfKey.get(key)
    if (index !== undefined) {
      const first = distinct[index] as ValidItem
      const isSame = first.value === value && first.metadata === metadata
      return isSame ? { index, isDuplicate: true } : { error: conflict() }
    }
    if (key !== null) indexOfKey.set(key, distinct.length)
    distinct.push(item)
    return { index: distinct.length - 1, isDuplicate: false }
  })
  return { distinct, positions }
}

function toResult(result: WriteResult, isDuplicate: boolean, closed: ApiError | undefined): BatchResult {
  const { outcome, id, createdAt, month } = result
  if (outcome === 'refused') return { error: closed ?? monthlyLimitReached(result, month) }
  if (outcome === 'conflict') return { error: conflict() }
  return { id: id as number, createdAt, isReplayed: isDuplicate || outcome === 'replayed' }
}

const conflict = () =>
  invalid('The idempotency_key was used for another signal.', [
    { path: '/idempotency_key', message: 'must be new, or come with the same prompt, value and metadata as before' },
  ])
