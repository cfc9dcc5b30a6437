import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { classifyError } from '../db/errors.ts'
import { pruneTable } from '../db/prune.ts'
import { createDataLoader, createSemaphore } from '../lib/concurrency.ts'
import { closedMonth, type Month, monthOf } from '../lib/months.ts'
import { dayMs } from '../lib/times.ts'
import { type Admission, createRefusals, isFull } from '../limit/admit.ts'
import type { Usage, UsageMonth } from '../limit/schema.ts'
import type { Prompt } from '../prompts/find.ts'
import type { SignalRollup } from '../stats/rollup.ts'
import { createGroupCommit } from './group_commit.ts'
import {
  type BrowserKey,
  findUsedKeys,
  findVotes,
  idOfKey,
  idOfVote,
  isVote,
  type OwnedIdempotencyKey,
  type SignalToWrite,
  type Vote,
  type WriteResult,
  writeSignals,
} from './store.ts'

/** The metadata is JSON. */
export type Signal = Pick<SignalToWrite, 'value' | 'metadata' | 'idempotencyKey' | 'subject'>

/**
 * The answer to the caller. `used` and `limit` are the ones to report: the browser key's if it has a limit, else the
 * organisation's. If the organisation's month refuses the signal, they are the organisation's.
 */
type SignalOutcome = WriteResult & { limitedBy?: 'key_month' }

type Refusal = Usage & Pick<SignalOutcome, 'limitedBy'>

export type SignalObserver = {
  ended(outcome: WriteResult['outcome']): void
  /** Called when a batch insert starts, with the number of signals and how long the first of them waited. */
  batchStarted(signals: number, waitedMs: number): void
}

/** What the recording of signals needs, and what is told of its results. */
export type Recording = {
  db: Db
  admission: Admission
  observe?: SignalObserver | undefined
  rollup?: SignalRollup
  /** Called with a prompt that the database does not have. */
  onMissing?: (prompt: Prompt) => void
}

type PendingSignal = SignalToWrite & { deadline: number }

/** The part of a caller's time that is reserved for the write itself. */
const writeMs = 500
/** A write slower than the first plus the second per signal is waiting for the disk, a standby or a lock. */
const [slowWriteMs, slowSignalMs] = [8, 0.03]
/** The most metadata in a batch, in characters: the embedded engine never returns the memory of its largest batch. */
const maxBatchLength = 1024 * 1024

export type SignalRecorder = ReturnType<typeof createSignalRecorder>

export function createSignalRecorder(recording: Recording, clock: Clock) {
  const { db, admission, observe } = recording
  /** Keeps a flood of requests with a full key off Postgres. */
  const keyRefusals = createRefusals(10_000)
  /** Whether each of the last two writes was slow: of two concurrent writes one flush confirms both, and one looks fast. */
  let wereSlow = [false, false]
  const commitsEarly = () => !db.isEmbedded && wereSlow.includes(true)
  const batches = createGroupCommit<PendingSignal, SignalOutcome>({
    /** One statement is one transaction. */
    async write(signals) {
      const startedAt = performance.now()
      const writing = writeSignals(db.sql, signals, { commitsEarly: commitsEarly() })
      const results = await writing.finally(() => {
        wereSlow = [wereSlow[1] === true, isSlowWrite(performance.now() - startedAt, signals.length)]
      })
      applyResults(recording, signals, results)
      results.forEach(({ keyUsage, month }, index) => {
        const key = signals[index]?.browserKey
        if (key && keyUsage) keyRefusals.learn(key.id, month, keyUsage)
      })
      return results.map(toSignalOutcome)
    },
    classifyError,
    groupOf: ({ prompt }) => prompt.organisationId,
    maxBatch: 500,
    weightOf: ({ metadata }) => metadata?.length ?? 0,
    maxBatchWeight: maxBatchLength,
    maxQueued: 10_000,
    deadlineOf: ({ deadline }) => deadline - writeMs,
    lingerMs: 1,
    // A write that commits early holds no lock while it waits, so the next one need not wait for it.
    maxWrites: () => (commitsEarly() ? 2 : 1),
    onWrite: (signals, waitedMs) => observe?.batchStarted(signals, waitedMs),
  })
  // Without a number of permits, only requests with the same key wait for each other: a batch must not hold a key twice.
  const oneAtATime = createSemaphore({ maxWaitingPerTenant: 100 })

  const findUsedKey = createDataLoader((keys: OwnedIdempotencyKey[]) => findUsedKeys(db.sql, keys), idOfKey)

  const findVote = createDataLoader((votes: Vote[]) => findVotes(db.sql, votes), idOfVote)

  /** What replays or replaces a signal does not count, and must succeed even when the month is full. */
  async function recordOnce(signal: PendingSignal, full: Refusal | undefined): Promise<SignalOutcome> {
    const { prompt, idempotencyKey } = signal
    const usedKey = idempotencyKey === null ? null : { organisationId: prompt.organisationId, key: idempotencyKey }
    // All signals before the refusal are committed, so an unknown idempotency key is no replay. It is refused without a write,
    // which would lock the organisation.
    const isKnown = async () =>
      (usedKey && (await findUsedKey(usedKey))) || (isVote(signal) && (await findVote(signal)))
    if (full && !(await isKnown())) return refuse(signal, full, observe)
    if (!usedKey) return batches.add(signal)
    const id = idOfKey(usedKey)
    // Each key is its own tenant, so at most 100 requests wait for one.
    return oneAtATime(() => batches.add(signal), { tenant: id, key: id })
  }

  const recordUnlessFull = (signal: PendingSignal, full: Refusal | undefined): Promise<SignalOutcome> =>
    full ? Promise.resolve(refuse(signal, full, observe)) : batches.add(signal)

  /** A cached refusal of a key holds only for the limit that it was made for. */
  function findFullKey({ id, monthlyLimit }: BrowserKey, month: Month): Refusal | undefined {
    const usage = keyRefusals.find(id, month)
    return usage?.limit === monthlyLimit ? { ...usage, limitedBy: 'key_month' } : undefined
  }

  return {
    /**
     * Resolves once the signal is committed and counted, or refused. A signal whose write has not started shortly before
     * `deadline`, on the clock of `performance.now()`, is never written: its caller gets an error.
     */
    record(
      prompt: Prompt,
      { value, metadata, idempotencyKey: key, subject: about }: Signal,
      deadline: number,
      browserKey: BrowserKey | null = null,
    ): Promise<SignalOutcome> {
      const createdAt = clock.now()
      const month = monthOf(createdAt)
      const idempotencyKey = ofPage(browserKey, key)
      const subject = ofPage(browserKey, about ?? null)
      const signal = { prompt, value, metadata, createdAt, month, idempotencyKey, subject, browserKey, deadline }
      const fullKey = browserKey ? findFullKey(browserKey, month) : undefined
      const { organisationId } = prompt
      if (idempotencyKey !== null || subject !== null) {
        return recordOnce(signal, fullKey ?? admission.findRefusal(organisationId, month))
      }
      const full = fullKey ?? admission.admit(organisationId, month)
      return full instanceof Promise
        ? full.then((usage) => recordUnlessFull(signal, usage))
        : recordUnlessFull(signal, full)
    },
    /** Waits until all pending signals are written. */
    drain: batches.drain,
  }
}

/**
 * Whether the next writes commit early. Where commits are slow, replicas would wait for each other's locks; where they are
 * fast, the second transaction only costs.
 */
export const isSlowWrite = (tookMs: number, signals: number): boolean => tookMs > slowWriteMs + slowSignalMs * signals

export function applyResults(
  { admission, observe, rollup, onMissing }: Recording,
  signals: SignalToWrite[],
  results: WriteResult[],
): void {
  // The last result of a month has its final count. Only the latest month matters to the admission. Signals of a batch may
  // be of a past month: closedMonth.
  const usages = new Map<number, UsageMonth & Usage>()
  results.forEach(({ outcome, used, limit, month }, index) => {
    const { prompt } = signals[index] as SignalToWrite
    const { organisationId } = prompt
    const known = usages.get(organisationId)
    if (month !== closedMonth && !(known && known.month.name > month.name)) {
      usages.set(organisationId, { organisationId, month, used, limit })
    }
    observe?.ended(outcome)
    if (outcome === 'recorded') rollup?.recorded(prompt)
    if (outcome === 'missing') onMissing?.(prompt)
  })
  admission.applyUsages(usages.values())
}

/**
 * An Idempotency-Key or a subject sent with a browser key is known only to that key and its rotations, so that visitors of a
 * page can neither take nor find those of a server. Clients cannot send a tab in either.
 */
export const ofPage = <T extends string | null>(browserKey: { id: number } | null, sent: T): string | T =>
  browserKey && sent !== null ? `${browserKey.id}\t${sent}` : sent

/** Refuses a signal without asking Postgres. */
export function refuse(
  { createdAt, month }: SignalToWrite,
  { used, limit, limitedBy }: Refusal,
  observe: SignalObserver | undefined,
): SignalOutcome {
  observe?.ended('refused')
  const unwritten = { id: null, isReplacement: false, keyUsage: null }
  const result: WriteResult = { ...unwritten, outcome: 'refused', createdAt, used, limit, month }
  return limitedBy ? { ...result, limitedBy } : result
}

function toSignalOutcome(result: WriteResult): SignalOutcome {
  const { keyUsage } = result
  if (!keyUsage || (result.outcome === 'refused' && !isFull(keyUsage))) return result
  return { ...result, ...keyUsage, limitedBy: 'key_month' }
}

/** A client may retry for a day. */
export const pruneIdempotencyKeys = (db: Db, now: Date): Promise<void> =>
  pruneTable(db, 'idempotency_keys', 'created_at', new Date(now.getTime() - dayMs))
