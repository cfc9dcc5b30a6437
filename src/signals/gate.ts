import type { Redis } from '../db/redis.ts'
import type { Month } from '../lib/months.ts'

/**
 * Keeps requests that the limit would refuse away from Postgres. Never the truth: too low, and Postgres
 * refuses; too high, and it is corrected before anyone is refused; out of reach, and it lets all pass.
 */
export type Gate = {
  /** Takes one from the month; the number taken so far, or undefined when it is not known. */
  take(organisationId: number, month: Month): Promise<number | undefined>
  /** Sets the number to what Postgres says. */
  correct(organisationId: number, month: Month, used: number): Promise<void>
}

export const noGate: Gate = {
  take: async () => undefined,
  correct: async () => {},
}

/** The braces keep one organisation's months on one node of a Redis Cluster. */
const keyOf = (organisationId: number, month: Month) => `signals:{${organisationId}}:${month.name}`

export function createGate(redis: Redis): Gate {
  const expiry = (month: Month) => month.resetsAt.getTime() / 1000
  return {
    async take(organisationId, month) {
      try {
        return await redis.takeSignal(keyOf(organisationId, month), expiry(month))
      } catch {
        return undefined
      }
    },
    async correct(organisationId, month, used) {
      try {
        await redis.set(keyOf(organisationId, month), used, 'EXAT', expiry(month))
      } catch {
        // The next request that finds the number wrong tries again.
      }
    },
  }
}
