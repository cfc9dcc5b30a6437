import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { classifyError } from '../db/errors.ts'
import { invalid, unavailable } from '../errors.ts'
import { createGroupCommit } from '../lib/group_commit.ts'
import { monthOf } from '../lib/months.ts'
import type { Admission, AdmissionResult, Usage } from '../limit/admit.ts'
import { type BrowserKey, createKeyRefusals } from '../limit/key_refusals.ts'
import type { Prompt } from '../prompts/find.ts'
import type { SignalRollup } from '../stats/rollup.ts'
import { createKeyedMutex } from './keyed_mutex.ts'
import type { NewSignal } from './schema.ts'
import { type AdmittedSignal, type WriteResult, writeSignals } from './store.ts'

export type Signal = {
  value: NewSignal['value']
  /** JSON text. */
  metadata: string | null
  /** The caller's Idempotency-Key. */
  idempotencyKey: string | null
}

/**
 * What the caller is answered. The count and the limit are the organisation's; or the key's, if the signal came with a
 * browser key that has a limit of its own, unless it is the organisation's that refuses.
 */
type SignalOutcome = Omit<WriteResult, 'ofKey'> & { limitedBy?: 'key_month' }

export type SignalRecorder = {
  /**
   * Resolves once the signal is committed and counted, or refused because there is no room. What cannot be written before
   * `deadline`, by the clock of `performance.now()`, is not written later: its caller has been answered with an error.
   */
  record(prompt: Prompt, signal: Signal, deadline: number, browserKey?: BrowserKey | null): Promise<SignalOutcome>
  /** Waits until everything under way has been written. */
  drain(): Promise<void>
}

export type SignalObserver = {
  /** Called with the outcome of every signal that went to the database. */
  ended(outcome: WriteResult['outcome']): void
  /** Called when a batch insert begins, with the number of signals and how long the first of them waited. */
  batchStarted(signals: number, waitedMs: number): void
}

type TimedSignal = AdmittedSignal & { deadline: number }

/** The part of a caller's time that is left for the write itself. */
const writeMs = 500

/** How many requests may wait for another with the same Idempotency-Key: far more than a caller retries at once. */
const maxRetriesWaiting = 100

/**
 * The most metadata in a batch, in characters. The embedded engine keeps the memory of its largest batch for ever: with
 * 1,500 callers who send 16 KB each, it peaked at 735 MB without this bound.
 */
const maxBatchLength = 1024 * 1024

export function createSignalRecorder(
  db: Db,
  admission: Admission,
  clock: Clock,
  observe?: SignalObserver,
  rollup?: SignalRollup,
): SignalRecorder {
  const batches = createGroupCommit<TimedSignal, SignalOutcome>({
    async write(signals) {
      const recorded = await writeSignals(db.sql, signals)
      admission.applyBatchResult(signals, recorded)
      recorded.forEach(({ outcome, ofKey, month }, index) => {
        observe?.ended(outcome)
        if (outcome === 'recorded') rollup?.recorded((signals[index] as TimedSignal).promptId)
        const keyId = signals[index]?.browserKeyId
        if (outcome === 'refused' && keyId && isFull(ofKey)) keyRefusals.add(keyId, month, ofKey)
      })
      return recorded.map(toSignalOutcome)
    },
    classifyError,
    groupOf: ({ organisationId }) => organisationId,
    rejectWith: unavailable,
    maxBatch: 500,
    weightOf: ({ metadata }) => metadata?.length ?? 0,
    maxBatchWeight: maxBatchLength,
    maxQueued: 10_000,
    giveUpAt: ({ deadline }) => deadline - writeMs,
    lingerMs: 1,
    onWrite: (signals, waitedMs) => observe?.batchStarted(signals, waitedMs),
  })
  const keyRefusals = createKeyRefusals()
  // A batch must not hold one key twice.
  const exclusively = createKeyedMutex(maxRetriesWaiting, unavailable)

  function recordAdmitted(signal: TimedSignal, { full, taken }: AdmissionResult): Promise<SignalOutcome> {
    signal.taken = taken
    return full ? Promise.resolve(refuse(signal, full)) : batches.add(signal)
  }

  return {
    record({ id: promptId, organisationId }, { value, metadata, idempotencyKey }, deadline, browserKey = null) {
      const createdAt = clock.now()
      const month = monthOf(createdAt)
      const browserKeyId = browserKey?.id ?? null
      const signal: TimedSignal = {
        organisationId,
        promptId,
        value,
        metadata,
        createdAt,
        month,
        idempotencyKey,
        deadline,
        browserKeyId,
      }
      // The gate is not asked: a replay spends nothing, and is answered at the limit too.
      if (idempotencyKey !== null)
        return exclusively(`${organisationId} ${idempotencyKey}`, () => batches.add(signal)).then(requireSame)
      const fullKey = browserKey && keyRefusals.find(browserKey, month)
      if (fullKey) return Promise.resolve({ ...refuse(signal, fullKey), limitedBy: 'key_month' })
      const admitted = admission.admit(organisationId, month)
      return admitted instanceof Promise
        ? admitted.then((result) => recordAdmitted(signal, result))
        : recordAdmitted(signal, admitted)
    },
    drain: batches.drain,
  }
}

const refuse = ({ createdAt, month }: TimedSignal, { used, limit }: Usage): SignalOutcome => ({
  outcome: 'refused',
  id: null,
  createdAt,
  used,
  limit,
  month,
})

const isFull = (usage: Usage | undefined): usage is Usage => usage !== undefined && usage.used >= usage.limit

function toSignalOutcome(recorded: WriteResult): SignalOutcome {
  const { ofKey } = recorded
  const isOrganisations = ofKey === undefined || (recorded.outcome === 'refused' && !isFull(ofKey))
  return isOrganisations ? recorded : { ...recorded, ...ofKey, limitedBy: 'key_month' }
}

function requireSame(recorded: SignalOutcome): SignalOutcome {
  if (recorded.outcome !== 'conflict') return recorded
  throw invalid('The Idempotency-Key was used for another signal.', [
    { path: 'Idempotency-Key', message: 'must be new, or come with the same prompt and body as before' },
  ])
}
