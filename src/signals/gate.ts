import type { Redis } from '../db/redis.ts'
import { createBreaker } from '../lib/breaker.ts'
import type { Month } from '../lib/months.ts'

/**
 * Keeps requests that the limit would refuse away from Postgres. Never the truth: too low, and Postgres
 * refuses; too high, and it is corrected before anyone is refused; out of reach, and it lets all pass.
 */
export type Gate = {
  /** Takes one from the month: the number taken so far, null when it has to be seeded, undefined when out of reach. */
  take(organisationId: number, month: Month): Promise<number | null | undefined>
  /** Sets the number to what Postgres says. */
  correct(organisationId: number, month: Month, used: number): Promise<void>
}

/** What the gate did for one request; `unreachable` when it let it pass unseen. */
export type GateDecision = 'passed' | 'refused' | 'seeded' | 'corrected' | 'unreachable'

export type GateObserver = {
  decided(decision: GateDecision): void
  /** Redis has failed so often that it is left out for a while, or is asked again. */
  breakerChanged(isOpen: boolean): void
}

export const noGate: Gate = {
  take: async () => undefined,
  correct: async () => {},
}

type Taking = { number: number; total: Promise<number | null | undefined> }

/** The braces keep one organisation's months on one node of a Redis Cluster. */
const keyOf = (organisationId: number, month: Month) => `signals:{${organisationId}}:${month.name}`

export function createGate(redis: Redis, observe?: GateObserver): Gate {
  // Two in a row may be chance; a request pays the deadline for no more than that.
  const breaker = createBreaker({
    failures: 2,
    retryMs: 1_000,
    onChange: (isOpen) => observe?.breakerChanged(isOpen),
  })
  /** Requests of one turn take together. */
  const takings = new Map<string, Taking>()
  const expiry = (month: Month) => month.resetsAt.getTime() / 1000

  function takeTogether(key: string, expiresAt: number): Taking {
    const taking: Taking = {
      number: 0,
      total: Promise.resolve().then(() => {
        takings.delete(key)
        return breaker.attempt(() => redis.takeSignals(key, taking.number, expiresAt))
      }),
    }
    takings.set(key, taking)
    return taking
  }

  return {
    async take(organisationId, month) {
      const key = keyOf(organisationId, month)
      const taking = takings.get(key) ?? takeTogether(key, expiry(month))
      taking.number += 1
      const nth = taking.number
      const total = await taking.total
      if (total === undefined) observe?.decided('unreachable')
      return typeof total === 'number' ? total - taking.number + nth : total
    },
    async correct(organisationId, month, used) {
      await breaker.attempt(() => redis.set(keyOf(organisationId, month), used, 'EXAT', expiry(month)))
    },
  }
}
