import type { Db } from '../db/client.ts'
import { classifyError } from '../db/errors.ts'
import { type ApiError, invalid } from '../errors.ts'
import { type Month, monthOf } from '../lib/months.ts'
import type { Admission } from '../limit/admit.ts'
import { monthlyLimitReached } from '../limit/headers.ts'
import type { Prompt } from '../prompts/find.ts'
import type { SignalRollup } from '../stats/rollup.ts'
import type { BatchItem } from './batch_items.ts'
import type { SignalObserver } from './record.ts'
import { type AdmittedSignal, type WriteResult, writeSignals } from './store.ts'

/** What became of a signal of a batch: it is recorded, now or before, or answered with an error. */
export type BatchResult = { id: number; createdAt: Date; isReplayed: boolean } | { error: ApiError }

type BatchOutcome = {
  /** The results, in the order of the signals. */
  results: BatchResult[]
  /** The month's count after the batch, and its limit; undefined when no signal was well-formed. */
  usage: { used: number; limit: number; month: Month } | undefined
}

export type BatchRecorder = {
  /**
   * Records what the month of `now` has room for, the first signals first, in one transaction. What cannot be written
   * before `deadline`, by the clock of `performance.now()`, is not written later.
   */
  record(prompt: Prompt, items: BatchItem[], now: Date, deadline: number): Promise<BatchOutcome>
}

export function createBatchRecorder(
  db: Db,
  admission: Admission,
  observe?: SignalObserver,
  rollup?: SignalRollup,
): BatchRecorder {
  /**
   * Writes in a transaction of the organisation's own, which holds up nobody else. Another batch of the organisation
   * would only wait for the same lock, and so waits here, without a connection.
   */
  async function write(
    organisationId: number,
    signals: AdmittedSignal[],
    now: Date,
    deadline: number,
  ): Promise<WriteResult[]> {
    const permitRequest = { tenant: organisationId, key: `signals of ${organisationId}`, deadline }
    const addedAt = performance.now()
    for (;;) {
      try {
        return await db.transaction(async (sql) => {
          observe?.batchStarted(signals.length, performance.now() - addedAt)
          return writeSignals(sql, signals, now)
        }, permitRequest)
      } catch (error) {
        // A lock on the organisation that others hold for long is waited for again, until the caller's time is up.
        if (classifyError(error) !== 'lock_timeout') throw error
      }
    }
  }

  async function admitAndWrite(
    organisationId: number,
    month: Month,
    signals: AdmittedSignal[],
    now: Date,
    deadline: number,
  ): Promise<WriteResult[]> {
    // With keys the gate is not asked: a replay spends nothing, and is answered at the limit too.
    const isKeyed = signals.some(({ idempotencyKey }) => idempotencyKey !== null)
    const { full, taken } = isKeyed ? {} : await admission.admit(organisationId, month)
    if (full) {
      // The gate has reported the first one itself.
      for (const _ of signals.slice(1)) observe?.ended('refused')
      return signals.map(({ createdAt }) => ({ outcome: 'refused', id: null, createdAt, ...full, month }))
    }
    const [first, ...others] = signals
    const admitted = first ? [{ ...first, taken }, ...others] : []
    const recorded = await write(organisationId, admitted, now, deadline)
    admission.applyBatchResult(admitted, recorded)
    recorded.forEach(({ outcome }, index) => {
      observe?.ended(outcome)
      if (outcome === 'recorded') rollup?.recorded((admitted[index] as AdmittedSignal).promptId)
    })
    return recorded
  }

  return {
    async record({ id: promptId, organisationId }, items, now, deadline) {
      const month = monthOf(now)
      const { distinct, positions } = deduplicate(items)
      const more = { organisationId, promptId, month, browserKeyId: null }
      const signals = distinct.map((item) => ({ ...item, ...more }))
      const recorded = signals.length > 0 ? await admitAndWrite(organisationId, month, signals, now, deadline) : []
      const results = positions.map((position) =>
        'error' in position ? position : toResult(recorded[position.index] as WriteResult, position.isDuplicate),
      )
      return { results, usage: recorded.at(-1) }
    },
  }
}

type WellFormed = Exclude<BatchItem, { error: ApiError }>

/** Where the outcome of an item is found among those of the distinct signals, unless it has an error already. */
type Position = { index: number; isDuplicate: boolean } | { error: ApiError }

/**
 * A key must not be written twice in one transaction, so an item with the key of an earlier one is not written, and has
 * the same outcome. Whether the two are the same is decided by their texts: nobody sends one signal twice in two ways.
 */
function deduplicate(items: BatchItem[]): { distinct: WellFormed[]; positions: Position[] } {
  const distinct: WellFormed[] = []
  const indexOfKey = new Map<string, number>()
  const positions = items.map((item): Position => {
    if ('error' in item) return item
    const { idempotencyKey: key, value, metadata } = item
    const index = key === null ? undefined : indexOfKey.get(key)
    if (index !== undefined) {
      const first = distinct[index] as WellFormed
      const isSame = first.value === value && first.metadata === metadata
      return isSame ? { index, isDuplicate: true } : { error: conflict() }
    }
    if (key !== null) indexOfKey.set(key, distinct.length)
    distinct.push(item)
    return { index: distinct.length - 1, isDuplicate: false }
  })
  return { distinct, positions }
}

function toResult({ outcome, id, createdAt, used, limit, month }: WriteResult, isDuplicate: boolean): BatchResult {
  if (outcome === 'refused') return { error: monthlyLimitReached(used, limit, month) }
  if (outcome === 'conflict') return { error: conflict() }
  return { id: id as number, createdAt, isReplayed: isDuplicate || outcome === 'replayed' }
}

const conflict = () =>
  invalid('The idempotency_key was used for another signal.', [
    { path: '/idempotency_key', message: 'must be new, or come with the same prompt, value and metadata as before' },
  ])
