import type { Redis } from '../db/redis.ts'
import { createBreaker } from '../lib/breaker.ts'
import type { Month } from '../lib/months.ts'
import { nextTurn } from '../lib/turns.ts'

/**
 * A counter in Redis that keeps requests which the limit would refuse away from Postgres. Postgres holds the truth: it
 * refuses when the counter is too low, the counter is corrected before it refuses anything, and while Redis is
 * unreachable every request passes.
 */
export type Gate = {
  /** Counts one more signal. Returns the counter, unless nothing was counted. */
  take(organisationId: number, month: Month): Promise<number | 'missing' | 'unreachable'>
  /** Sets the counter to the usage that Postgres reported. */
  correct(organisationId: number, month: Month, used: number): Promise<void>
}

/** What was decided for one request at the gate; `unreachable` lets it pass uncounted. */
export type GateDecision = 'passed' | 'refused' | 'seeded' | 'corrected' | 'unreachable'

export type GateObserver = {
  decided(decision: GateDecision): void
  /** Called when the breaker opens after failures of Redis, and when it closes after a success. */
  breakerChanged(isOpen: boolean): void
}

/** Raises a counter, unless it is missing. Removes one that cannot be raised, so that it is seeded from Postgres again. */
const takeScript = `
if redis.call('EXISTS', KEYS[1]) == 0 then return nil end
local count = redis.pcall('INCRBY', KEYS[1], ARGV[1])
if type(count) ~= 'number' then
  redis.call('DEL', KEYS[1])
  return nil
end
redis.call('EXPIREAT', KEYS[1], ARGV[2])
return count`

/** One call of the script for all requests of an organisation that arrive in one turn of the event loop. */
type BatchedIncrement = { increment: number; count: Promise<number | null | undefined> }

/** The braces keep the months of an organisation on one node of a Redis Cluster. */
const keyOf = (organisationId: number, month: Month) => `signals:{${organisationId}}:${month.name}`

export function createGate(redis: Redis, observe?: GateObserver): Gate {
  const attempt = createBreaker((isOpen) => observe?.breakerChanged(isOpen))
  const batches = new Map<string, BatchedIncrement>()

  function startBatch(key: string, expiresAt: number): BatchedIncrement {
    const batch: BatchedIncrement = {
      increment: 0,
      count: nextTurn().then(() => {
        batches.delete(key)
        return attempt(() => redis.run(takeScript, key, batch.increment, expiresAt), redis.nodeOf(key))
      }),
    }
    batches.set(key, batch)
    return batch
  }

  return {
    async take(organisationId, month) {
      const key = keyOf(organisationId, month)
      const batch = batches.get(key) ?? startBatch(key, month.resetsAtSeconds)
      batch.increment += 1
      const position = batch.increment
      const count = await batch.count
      if (count === undefined) return 'unreachable'
      return count === null ? 'missing' : count - batch.increment + position
    },
    async correct(organisationId, month, used) {
      const key = keyOf(organisationId, month)
      await attempt(() => redis.set(key, used, 'EXAT', month.resetsAtSeconds), redis.nodeOf(key))
    },
  }
}
