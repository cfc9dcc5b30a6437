import type { Redis } from '../db/redis.ts'
import { createBreaker } from '../lib/breaker.ts'
import type { Month } from '../lib/months.ts'
import { nextTurn } from '../lib/turns.ts'

/**
 * A counter in Redis that keeps requests which the limit would refuse away from Postgres. It is never the truth: when
 * it is too low, Postgres refuses; when it is too high, it is corrected before it refuses anything; when Redis cannot be
 * reached, every request passes.
 */
export type Gate = {
  /** Counts one more signal: returns the count, null when there is none yet, undefined when Redis cannot be reached. */
  take(organisationId: number, month: Month): Promise<number | null | undefined>
  /** Sets the count to what Postgres says. */
  correct(organisationId: number, month: Month, used: number): Promise<void>
}

/** What the gate did for one request; `unreachable` when it let the request pass uncounted. */
export type GateDecision = 'passed' | 'refused' | 'seeded' | 'corrected' | 'unreachable'

export type GateObserver = {
  decided(decision: GateDecision): void
  /** Called when the breaker opens after failures of Redis, and when it closes after a success. */
  breakerChanged(isOpen: boolean): void
}

export const noGate: Gate = {
  take: async () => undefined,
  correct: async () => {},
}

/**
 * Raises a count and lets it expire at the given second. A missing count stays missing. What is no number, or too large
 * to be raised, is removed, so that it is seeded from Postgres like a missing one.
 */
const takeScript = `
if redis.call('EXISTS', KEYS[1]) == 0 then return nil end
local taken = redis.pcall('INCRBY', KEYS[1], ARGV[1])
if type(taken) ~= 'number' then
  redis.call('DEL', KEYS[1])
  return nil
end
redis.call('EXPIREAT', KEYS[1], ARGV[2])
return taken`

/** One call of the script for all requests of an organisation that arrive in one turn of the event loop. */
type BatchedIncrement = { number: number; total: Promise<number | null | undefined> }

/** The braces keep one organisation's months on one node of a Redis Cluster. */
const keyOf = (organisationId: number, month: Month) => `signals:{${organisationId}}:${month.name}`

export function createGate(redis: Redis, observe?: GateObserver): Gate {
  // One failure may be chance; no request pays the deadline for more than two.
  const breaker = createBreaker({
    failures: 2,
    retryMs: 1_000,
    onChange: (isOpen) => observe?.breakerChanged(isOpen),
  })
  const batches = new Map<string, BatchedIncrement>()

  function startBatch(key: string, expiresAt: number): BatchedIncrement {
    const batch: BatchedIncrement = {
      number: 0,
      total: nextTurn().then(() => {
        batches.delete(key)
        return breaker.attempt(() => redis.run(takeScript, key, batch.number, expiresAt))
      }),
    }
    batches.set(key, batch)
    return batch
  }

  return {
    async take(organisationId, month) {
      const key = keyOf(organisationId, month)
      const batch = batches.get(key) ?? startBatch(key, month.resetsAtSeconds)
      batch.number += 1
      const nth = batch.number
      const total = await batch.total
      if (total === undefined) observe?.decided('unreachable')
      return typeof total === 'number' ? total - batch.number + nth : total
    },
    async correct(organisationId, month, used) {
      await breaker.attempt(() => redis.set(keyOf(organisationId, month), used, 'EXAT', month.resetsAtSeconds))
    },
  }
}
