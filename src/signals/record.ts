import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { faultOf } from '../db/faults.ts'
import { invalid, unavailable } from '../errors.ts'
import { createGroupCommit } from '../lib/group_commit.ts'
import { monthOf } from '../lib/months.ts'
import { createTurns } from '../lib/turns.ts'
import type { Prompt } from '../prompts/find.ts'
import { type Admission, type AdmittedSignal, periodOf, type Verdict } from './admit.ts'
import type { NewSignal } from './schema.ts'
import { type Recorded, recordSignals } from './store.ts'

export type Signal = {
  value: NewSignal['value']
  /** JSON text. */
  metadata: string | null
  /** The caller's Idempotency-Key. */
  repeatKey: string | null
}

export type SignalRecorder = {
  /** Resolves once the signal is committed and counted, or refused because there is no room. */
  record(prompt: Prompt, signal: Signal): Promise<Recorded>
  /** Waits until everything under way has been written. */
  drain(): Promise<void>
}

export type SignalObserver = {
  /** What became of a signal that went to the database. */
  ended(outcome: Recorded['outcome']): void
  /** A write began: of how many signals, the first of which waited so long. */
  wrote(signals: number, waitedMs: number): void
}

/** Of one Idempotency-Key: far more than any caller retries at once. */
const maxRepeatsWaiting = 100

export function createSignalRecorder(
  db: Db,
  admission: Admission,
  clock: Clock,
  observe?: SignalObserver,
): SignalRecorder {
  const writes = createGroupCommit<AdmittedSignal, Recorded>({
    async write(signals) {
      const recorded = await recordSignals(db.sql, signals)
      admission.learn(signals, recorded)
      for (const { outcome } of recorded) observe?.ended(outcome)
      return recorded
    },
    faultOf,
    groupOf: ({ organisationId }) => organisationId,
    refuse: unavailable,
    maxItems: 500,
    maxWaiting: 5_000,
    patienceMs: 4_000,
    gatherMs: 1,
    onWrite: (signals, waitedMs) => observe?.wrote(signals, waitedMs),
  })
  const inTurns = createTurns(maxRepeatsWaiting, unavailable)

  function obey({ full, taken }: Verdict, signal: AdmittedSignal): Promise<Recorded> {
    const { createdAt, month } = signal
    if (full) return Promise.resolve({ outcome: 'refused', id: null, createdAt, ...full, month })
    signal.taken = taken
    return writes.add(signal)
  }

  return {
    record({ id: promptId, organisationId }, { value, metadata, repeatKey }) {
      const now = clock.now()
      const month = monthOf(now)
      const [createdAt, period] = [now.toISOString(), periodOf(organisationId, month)]
      const signal = { organisationId, promptId, value, metadata, createdAt, month, period, repeatKey }
      // Past the gate: a repeat spends nothing, and is answered at the limit too.
      if (repeatKey !== null)
        return inTurns(`${organisationId} ${repeatKey}`, () => writes.add(signal)).then(requireSame)
      const verdict = admission.admit(organisationId, month)
      return verdict instanceof Promise ? verdict.then((one) => obey(one, signal)) : obey(verdict, signal)
    },
    drain: writes.drain,
  }
}

function requireSame(recorded: Recorded): Recorded {
  if (recorded.outcome !== 'differs') return recorded
  throw invalid('The Idempotency-Key was used for another signal.', [
    { path: 'Idempotency-Key', message: 'must be new, or come with the same prompt and body as before' },
  ])
}
