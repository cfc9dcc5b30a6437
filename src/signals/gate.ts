import type { Redis } from '../db/redis.ts'
import { createBreaker } from '../lib/breaker.ts'
import type { Month } from '../lib/months.ts'
import { nextTurn } from '../lib/turns.ts'

/**
 * Keeps requests that the limit would refuse away from Postgres. Never the truth: too low, and Postgres
 * refuses; too high, and it is corrected before anyone is refused; out of reach, and it lets all pass.
 */
export type Gate = {
  /** Takes one from the month: the number taken so far, null when it has to be seeded, undefined when out of reach. */
  take(organisationId: number, month: Month): Promise<number | null | undefined>
  /** Counts some that were recorded without being taken first; soon, and together with others. */
  note(organisationId: number, month: Month, number: number, used: number): void
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
  note: () => {},
  correct: async () => {},
}

/** How long a number may be behind while it is far from any limit. */
const noteMs = 100

type Noted = { number: number; used: number; expiresAt: number }

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

  const noted = new Map<string, Noted>()

  async function writeNote(key: string, { number, used, expiresAt }: Noted): Promise<void> {
    const written = await breaker.attempt(async () => {
      const total = await redis.takeSignals(key, number, expiresAt)
      if (total === null || total < used) await redis.set(key, used, 'EXAT', expiresAt)
      return true
    })
    if (!written) observe?.decided('unreachable')
  }

  function writeNotes(): void {
    for (const [key, note] of noted) writeNote(key, note)
    noted.clear()
  }

  function takeTogether(key: string, expiresAt: number): Taking {
    const taking: Taking = {
      number: 0,
      total: nextTurn().then(() => {
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
      const taking = takings.get(key) ?? takeTogether(key, month.resetsAtSeconds)
      taking.number += 1
      const nth = taking.number
      const total = await taking.total
      if (total === undefined) observe?.decided('unreachable')
      return typeof total === 'number' ? total - taking.number + nth : total
    },
    note(organisationId, month, number, used) {
      const key = keyOf(organisationId, month)
      const known = noted.get(key)
      if (noted.size === 0) setTimeout(writeNotes, noteMs)
      noted.set(key, { number: (known?.number ?? 0) + number, used, expiresAt: month.resetsAtSeconds })
    },
    async correct(organisationId, month, used) {
      await breaker.attempt(() => redis.set(keyOf(organisationId, month), used, 'EXAT', month.resetsAtSeconds))
    },
  }
}
