import type { Clock } from '../clock.ts'
import { type Db, faultOf } from '../db/client.ts'
import { invalid, ServiceError, unavailable } from '../errors.ts'
import { BoundedCache } from '../lib/bounded_cache.ts'
import { createGroupCommit } from '../lib/group_commit.ts'
import { createGroupLookup } from '../lib/group_lookup.ts'
import { type Month, monthOf } from '../lib/months.ts'
import { createTurns } from '../lib/turns.ts'
import type { Prompt } from '../prompts/find.ts'
import type { Gate } from './gate.ts'
import { type Recorded, readUsages, recordSignals, type SignalToRecord, type Usage } from './store.ts'

export type Signal = {
  value: string
  /** JSON text. */
  metadata: string | null
  /** The caller's Idempotency-Key. */
  repeatKey: string | null
}

export type RecordedSignal = Recorded & { month: Month }

export type SignalRecorder = {
  /** Resolves once the signal is committed and counted; rejects with `rate_limited` when there is no room. */
  record(prompt: Prompt, signal: Signal): Promise<RecordedSignal>
  /** Waits until everything under way has been written. */
  drain(): Promise<void>
}

const maxKnownLimits = 100_000

export function createSignalRecorder(db: Db, gate: Gate, clock: Clock): SignalRecorder {
  const writes = createGroupCommit<SignalToRecord, Recorded>({
    write: (signals) => recordSignals(db.sql, signals),
    faultOf,
    groupOf: ({ organisationId }) => organisationId,
    refuse: unavailable,
    maxItems: 500,
    maxWaiting: 5_000,
    patienceMs: 4_000,
  })
  const inTurns = createTurns()
  /** As Postgres last said: only a hint of when the gate may be right to refuse. */
  const knownLimits = new BoundedCache<number, number>(maxKnownLimits)
  const findUsage = createGroupLookup((keys) => readUsages(db.sql, keys))

  /** Refuses what the gate would refuse, once Postgres has confirmed it. */
  async function passGate(organisationId: number, month: Month): Promise<number | undefined> {
    const taken = await gate.take(organisationId, month)
    if (taken === undefined) return undefined
    const knownLimit = knownLimits.get(organisationId) ?? Number.POSITIVE_INFINITY
    if (taken !== null && taken <= knownLimit) return taken
    const { used, limit } = (await findUsage(`${organisationId} ${month.name}`)) as Usage
    knownLimits.set(organisationId, limit)
    // Seeded even when the month is full: it is then that the gate is needed.
    if (taken === null || used < limit) await gate.correct(organisationId, month, used + 1)
    if (used >= limit) throw rateLimited(used, limit, month)
    return used + 1
  }

  async function write(signal: SignalToRecord, month: Month, taken: number | undefined): Promise<RecordedSignal> {
    const recorded = await writes.add(signal)
    const { outcome, used, limit } = recorded
    knownLimits.set(signal.organisationId, limit)
    if (taken !== undefined && taken < used) await gate.correct(signal.organisationId, month, used)
    if (outcome === 'refused') throw rateLimited(used, limit, month)
    if (outcome === 'differs') throw keyIsTaken()
    return { ...recorded, month }
  }

  return {
    async record({ id: promptId, organisationId }, { value, metadata, repeatKey }) {
      const createdAt = clock.now()
      const month = monthOf(createdAt)
      const signal = { organisationId, promptId, value, metadata, createdAt, repeatKey }
      if (repeatKey === null) return write(signal, month, await passGate(organisationId, month))
      // Past the gate: a repeat spends nothing, and is answered at the limit too.
      return inTurns(`${organisationId} ${repeatKey}`, async () => {
        const recorded = await write(signal, month, undefined)
        if (recorded.outcome === 'recorded') await gate.take(organisationId, month)
        return recorded
      })
    },
    drain: writes.drain,
  }
}

function rateLimited(used: number, limit: number, month: Month): ServiceError {
  return new ServiceError(
    'rate_limited',
    `This month's ${limit} signals are used up. Wait until resets_at, or move to a larger plan.`,
    { limit, used, resets_at: month.resetsAt.toISOString() },
    { ...limitHeaders(used, limit, month), 'retry-after': String(month.secondsLeft) },
  )
}

const keyIsTaken = () =>
  invalid('The Idempotency-Key was used for another signal.', [
    { path: 'Idempotency-Key', message: 'must be new, or come with the same prompt and body as before' },
  ])

/** What is left of the month, as the RateLimit header fields say it. */
export const limitHeaders = (used: number, limit: number, month: Month): Record<string, string> => ({
  'ratelimit-policy': `"signals";q=${limit};w=${month.lengthSeconds}`,
  ratelimit: `"signals";r=${Math.max(limit - used, 0)};t=${month.secondsLeft}`,
})
