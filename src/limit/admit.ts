import type { Db } from '../db/client.ts'
import type { Redis } from '../db/redis.ts'
import type { ApiError, LimitedBy } from '../errors.ts'
import { BoundedCache } from '../lib/bounded_cache.ts'
import { createDataLoader } from '../lib/concurrency.ts'
import type { Month } from '../lib/months.ts'
import type { Usage, UsageMonth } from './schema.ts'
import { readUsages } from './store.ts'

/** What was decided, before a write, for a signal of a month that is nearly full. */
export type GateDecision = 'passed' | 'refused'

export type Admission = ReturnType<typeof createAdmission>

const maxOrganisations = 100_000
/** Together less than a second, within which a raised limit must hold. */
const [refusalTrustedForMs, retryMs] = [500, 250]

/**
 * Refuses signals of a full month before they reach Postgres. Postgres decides: only what a statement has found is
 * refused, and only for a moment. With Redis, a counter (the gate) also keeps signals from the lock of a full organisation.
 */
export function createAdmission(db: Db, redis?: Redis, observe: (decision: GateDecision) => void = () => {}) {
  /** Hints that save calls of the gate. Nothing is refused because of them. */
  const usages = new BoundedCache<number, Usage & { month: string }>(maxOrganisations)
  const refusals = createRefusals(maxOrganisations)
  const findUsage = createDataLoader(async (months: UsageMonth[]) => {
    const found = await readUsages(db.sql, months)
    return new Map(months.map((month, index) => [idOf(month), found[index] as Usage]))
  }, idOf)

  function remember(organisationId: number, month: Month, { used, limit }: Usage): void {
    usages.set(organisationId, { used, limit, month: month.name })
    refusals.learn(organisationId, month, { used, limit })
  }

  /** Counts a signal. Postgres confirms a count over the limit, or corrects it. */
  async function askGate(redis: Redis, organisationId: number, month: Month, limit: number) {
    const count = await redis.raiseCounter(keyOf(organisationId, month), month.resetsAtSeconds)
    // A missing count is set after the write. While Redis does not answer, every signal passes.
    if (count == null || count <= limit) return undefined
    const usage = (await findUsage({ organisationId, month })) as Usage
    remember(organisationId, month, usage)
    if (isFull(usage)) return usage
    await redis.setCounter(keyOf(organisationId, month), usage.used + 1, month.resetsAtSeconds)
    return undefined
  }

  function decide(refusal: Usage | undefined): Usage | undefined {
    observe(refusal ? 'refused' : 'passed')
    return refusal
  }

  return {
    /** The usage of a month that was full a moment ago. */
    findRefusal: refusals.find,
    /** Returns undefined to admit the signal, else the usage of the full month. */
    admit(organisationId: number, month: Month): Usage | undefined | Promise<Usage | undefined> {
      const known = usages.get(organisationId)
      if (known?.month !== month.name || isFarFromFull(known)) return undefined
      const refusal = refusals.find(organisationId, month)
      return refusal || !redis ? decide(refusal) : askGate(redis, organisationId, month, known.limit).then(decide)
    },
    /** Keeps the usages after a write, and sets the gate to them near the limit. */
    applyUsages(months: Iterable<UsageMonth & Usage>): void {
      for (const { organisationId, month, used, limit } of months) {
        remember(organisationId, month, { used, limit })
        if (isFarFromFull({ used, limit })) continue
        redis?.setCounter(keyOf(organisationId, month), used, month.resetsAtSeconds)
      }
    },
  }
}

const idOf = ({ organisationId, month }: UsageMonth): string => `${organisationId} ${month.name}`

export const isFull = ({ used, limit }: Usage): boolean => used >= limit

/** Below nine tenths of the limit a refusal is unlikely, and the gate is not asked. */
const isFarFromFull = ({ used, limit }: Usage): boolean => used < limit * 0.9

/** Full months of organisations or of browser keys, as a statement has found them a moment ago. */
export function createRefusals(maxSize: number) {
  const known = new BoundedCache<number, Usage & { month: string; until: number }>(maxSize)
  return {
    find(id: number, month: Month): Usage | undefined {
      const refusal = known.get(id)
      if (refusal?.month !== month.name) return undefined
      const now = performance.now()
      if (now < refusal.until) return refusal
      // One signal of a flood asks Postgres again. The others are refused until it is answered.
      refusal.until = now + retryMs
      return undefined
    },
    learn(id: number, month: Month, { used, limit }: Usage): void {
      const until = performance.now() + refusalTrustedForMs
      if (isFull({ used, limit })) known.set(id, { used, limit, month: month.name, until })
      else known.delete(id)
    },
  }
}

/** The braces keep the months of an organisation on one node of a Redis Cluster. */
const keyOf = (organisationId: number, month: Month) => `signals:{${organisationId}}:${month.name}`

const inThousands = new Intl.NumberFormat('en')

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
        : `This organisation has used ${all}. Wait until resets_at, or ask the operator for more: orgs set-plan ORG PLAN --monthly-limit N.`,
    context: { limited_by: limitedBy, limit, used, resets_at: month.resetsAt },
    headers: { ...limitHeaders({ used, limit }, month), 'retry-after': String(month.secondsLeft) },
  }
}
