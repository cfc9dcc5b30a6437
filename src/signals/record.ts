import type { Clock } from '../clock.ts'
import { type Db, isDataFault } from '../db/client.ts'
import { ServiceError, unavailable } from '../errors.ts'
import { BoundedCache } from '../lib/bounded_cache.ts'
import { createGroupCommit } from '../lib/group_commit.ts'
import { type Month, monthOf } from '../lib/months.ts'
import { createSharedLookup } from '../lib/shared_lookup.ts'
import type { Prompt } from '../prompts/find.ts'
import type { Gate } from './gate.ts'
import { type Recorded, readUsage, recordSignals, type SignalToRecord } from './store.ts'

export type RecordedSignal = { id: number; createdAt: Date; used: number; limit: number; month: Month }

export type SignalRecorder = {
  /** Resolves once the signal is committed and counted; rejects with `rate_limited` when there is no room. */
  record(prompt: Prompt, value: string, metadata: string | null): Promise<RecordedSignal>
  /** Waits until everything under way has been written. */
  drain(): Promise<void>
}

const maxKnownLimits = 100_000

export function createSignalRecorder(db: Db, gate: Gate, clock: Clock): SignalRecorder {
  const writes = createGroupCommit<SignalToRecord, Recorded>({
    write: (signals) => recordSignals(db.sql, signals),
    isItemFault: isDataFault,
    refuse: unavailable,
    maxItems: 500,
    maxWaiting: 5_000,
  })
  /** As Postgres last said: only a hint of when the gate may be right to refuse. */
  const knownLimits = new BoundedCache<number, number>(maxKnownLimits)
  const sharedUsage = createSharedLookup((key: string) => {
    const [organisationId, month] = key.split(' ') as [string, string]
    return readUsage(db.sql, Number(organisationId), month)
  })

  /** Refuses what the gate would refuse, once Postgres has confirmed it. */
  async function passGate(organisationId: number, month: Month): Promise<number | undefined> {
    const taken = await gate.take(organisationId, month)
    const knownLimit = knownLimits.get(organisationId)
    if (taken === undefined || knownLimit === undefined || taken <= knownLimit) return taken
    const { used, limit } = await sharedUsage(`${organisationId} ${month.name}`)
    knownLimits.set(organisationId, limit)
    if (used >= limit) throw rateLimited(used, limit, month)
    await gate.correct(organisationId, month, used + 1)
    return used + 1
  }

  return {
    async record({ id: promptId, organisationId }, value, metadata) {
      const createdAt = clock.now()
      const month = monthOf(createdAt)
      const taken = await passGate(organisationId, month)
      const { id, used, limit } = await writes.add({ organisationId, promptId, value, metadata, createdAt })
      knownLimits.set(organisationId, limit)
      if (taken !== undefined && taken < used) await gate.correct(organisationId, month, used)
      if (id === null) throw rateLimited(used, limit, month)
      return { id, createdAt, used, limit, month }
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

/** What is left of the month, as the RateLimit header fields say it. */
export const limitHeaders = (used: number, limit: number, month: Month): Record<string, string> => ({
  'ratelimit-policy': `"signals";q=${limit};w=${month.lengthSeconds}`,
  ratelimit: `"signals";r=${Math.max(limit - used, 0)};t=${month.secondsLeft}`,
})
