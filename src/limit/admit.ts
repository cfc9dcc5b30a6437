import type { Db } from '../db/client.ts'
import type { Redis } from '../db/redis.ts'
import type { ApiError, LimitedBy } from '../errors.ts'
import { BoundedCache } from '../lib/bounded_cache.ts'
import { createBreaker } from '../lib/breaker.ts'
import { createDataLoader } from '../lib/data_loader.ts'
import type { Month } from '../lib/months.ts'
import { nextTurn } from '../lib/turns.ts'
import type { Usage, UsageMonth } from './schema.ts'
import { readUsages } from './store.ts'

/** What was decided for one request at the gate; `unreachable` lets it pass uncounted. */
export type GateDecision = 'passed' | 'refused' | 'seeded' | 'corrected' | 'unreachable'

export type GateObserver = {
  decided(decision: GateDecision): void
  /** Called when the breaker opens after failures of Redis, and when it closes after a success. */
  breakerChanged(isOpen: boolean): void
}

export type Admission = ReturnType<typeof createAdmission>

const maxOrganisations = 100_000
/** How long a cached refusal holds. The notification of a changed limit may be lost with its connection. */
const refusalTrustedForMs = 1_000

/** With Redis, refuses signals before they reach Postgres, once Postgres has confirmed that the month is full. */
export function createAdmission(db: Db, redis?: Redis, observe?: GateObserver) {
  const gate = redis && createGate(redis, observe?.breakerChanged)
  /** Hints that save calls of the gate. Nothing is refused because of them. */
  const usages = new BoundedCache<number, Usage & { month: string }>(maxOrganisations)
  /** Months that Postgres has confirmed to be full. */
  const refusals = createRefusals(maxOrganisations)
  const findUsage = createDataLoader(async (months: UsageMonth[]) => {
    const found = await readUsages(db.sql, months)
    return new Map(months.map((month, index) => [idOf(month), found[index] as Usage]))
  }, idOf)
  /** Zero until the service listens for changes of limits; no refusal is cached before. */
  let invalidations = 0

  function findKnown(organisationId: number, month: Month): Usage | undefined {
    const known = usages.get(organisationId)
    return known?.month === month.name ? known : undefined
  }

  /** Reads the usage from Postgres, and caches the refusal if the month is full. */
  async function confirm(organisationId: number, month: Month): Promise<Usage> {
    const cached = refusals.find(organisationId, month)
    if (cached) return cached
    const invalidationsBefore = invalidations
    const usage = (await findUsage({ organisationId, month })) as Usage
    usages.set(organisationId, { ...usage, month: month.name })
    const isCurrent = invalidations > 0 && invalidations === invalidationsBefore
    if (isFull(usage) && isCurrent) refusals.add(organisationId, month, usage)
    return usage
  }

  function decide(decision: GateDecision, refusal?: Usage): Usage | undefined {
    observe?.decided(decision)
    return refusal
  }

  async function askGate(organisationId: number, month: Month): Promise<Usage | undefined> {
    if (!gate) return undefined
    const count = await gate.take(organisationId, month)
    if (count === 'unreachable') return decide('unreachable')
    const limit = findKnown(organisationId, month)?.limit ?? Number.POSITIVE_INFINITY
    if (count !== 'missing' && count <= limit) return decide('passed')
    const usage = await confirm(organisationId, month)
    if (isFarFromFull(usage)) return decide('passed')
    const isMissing = count === 'missing'
    // A missing counter is seeded even when the month is full, so that the gate refuses the next requests.
    if (isMissing || !isFull(usage)) await gate.correct(organisationId, month, usage.used + 1)
    if (isFull(usage)) return decide('refused', usage)
    return decide(isMissing ? 'seeded' : 'corrected')
  }

  return {
    /**
     * Counts a signal at the gate, unless the month is known to be far from full. Returns undefined to admit the signal, else
     * the usage of the full month.
     */
    admit(organisationId: number, month: Month): Usage | undefined | Promise<Usage | undefined> {
      const known = findKnown(organisationId, month)
      if (known && isFarFromFull(known)) return undefined
      const cached = refusals.find(organisationId, month)
      return cached ? decide('refused', cached) : askGate(organisationId, month)
    },
    /** Caches the usage after a write, and sets the gate to it near the limit. */
    applyUsages(months: Iterable<UsageMonth & Usage>): void {
      for (const { organisationId, month, used, limit } of months) {
        usages.set(organisationId, { used, limit, month: month.name })
        if (!isFarFromFull({ used, limit })) gate?.correct(organisationId, month, used)
      }
    },
    /** Forgets cached refusals of one organisation, or of all, when limits may have changed. */
    forgetRefusals(organisationId?: number): void {
      invalidations += 1
      if (organisationId === undefined) refusals.clear()
      else refusals.delete(organisationId)
    },
  }
}

const idOf = ({ organisationId, month }: UsageMonth): string => `${organisationId} ${month.name}`

export const isFull = ({ used, limit }: Usage): boolean => used >= limit

/** Below nine tenths of the limit a refusal is unlikely, and the gate is not asked. Postgres decides in any case. */
const isFarFromFull = ({ used, limit }: Usage): boolean => used < limit * 0.9

/** Full months that Postgres has confirmed, of organisations or of browser keys. */
export function createRefusals(maxSize: number) {
  const known = new BoundedCache<number, Usage & { month: string; until: number }>(maxSize)
  return {
    find(id: number, month: Month): Usage | undefined {
      const refusal = known.get(id)
      return refusal?.month === month.name && performance.now() < refusal.until ? refusal : undefined
    },
    add(id: number, month: Month, { used, limit }: Usage): void {
      known.set(id, { used, limit, month: month.name, until: performance.now() + refusalTrustedForMs })
    },
    delete: (id: number) => known.delete(id),
    clear: () => known.clear(),
  }
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

/**
 * A counter in Redis that keeps requests which the limit would refuse away from Postgres. Postgres holds the truth: it
 * refuses when the counter is too low, the counter is corrected before it refuses anything, and while Redis is
 * unreachable every request passes.
 */
export function createGate(redis: Redis, onBreaker?: (isOpen: boolean) => void) {
  const attempt = createBreaker(onBreaker)
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
    /** Counts one more signal. Returns the counter, unless nothing was counted. */
    async take(organisationId: number, month: Month): Promise<number | 'missing' | 'unreachable'> {
      const key = keyOf(organisationId, month)
      const batch = batches.get(key) ?? startBatch(key, month.resetsAtSeconds)
      batch.increment += 1
      const position = batch.increment
      const count = await batch.count
      if (count === undefined) return 'unreachable'
      return count === null ? 'missing' : count - batch.increment + position
    },
    /** Sets the counter to the usage that Postgres reported. */
    async correct(organisationId: number, month: Month, used: number): Promise<void> {
      const key = keyOf(organisationId, month)
      await attempt(() => redis.set(key, used, 'EXAT', month.resetsAtSeconds), redis.nodeOf(key))
    },
  }
}

const inThousands = new Intl.NumberFormat('en')

/** The RateLimit header fields for what is left of the month. */
export const limitHeaders = ({ used, limit }: Usage, month: Month): Record<string, string> => ({
  'ratelimit-policy': `"signals";q=${limit};w=${month.lengthSeconds}`,
  ratelimit: `"signals";r=${Math.max(limit - used, 0)};t=${month.secondsLeft}`,
})

/** The error for a full month. It is returned, because throwing it would cost more than the rest of the request. */
export function monthlyLimitReached(
  { used, limit }: Usage,
  month: Month,
  limitedBy: LimitedBy = 'organisation_month',
): ApiError {
  const all = `all ${inThousands.format(limit)} of its signals for this month`
  return {
    code: 'rate_limited',
    message:
      limitedBy === 'key_month'
        ? `This API key has used ${all}. Wait until resets_at, or raise the limit of the key.`
        : `This organisation has used ${all}. Wait until resets_at, or move to a larger plan.`,
    context: { limited_by: limitedBy, limit, used, resets_at: month.resetsAt },
    headers: { ...limitHeaders({ used, limit }, month), 'retry-after': String(month.secondsLeft) },
  }
}
