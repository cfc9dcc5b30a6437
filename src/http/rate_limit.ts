import type { Clock } from '../clock.ts'
import type { Redis } from '../db/redis.ts'
import { type ApiError, type LimitedBy, ServiceError } from '../errors.ts'
import { BoundedCache } from '../lib/bounded_cache.ts'
import type { createAddressFinder } from './client_address.ts'

/** Allows bursts of `requests`, refilled evenly over the window. */
export type Rate = { requests: number; windowSeconds: number }

/** Each request adds one to `used`, which drains at the rate. `unshared` is the part not added to Redis yet. */
type Bucket = { readonly subject: string | number; used: number; unshared: number; leakedAt: number }

type RateLimiter = ReturnType<typeof createRateLimiter>

/** How much of its rate a subject has used, including the current request. */
export type RateUsage = ReturnType<RateLimiter['take']>

export type RateLimitKind = Extract<LimitedBy, `${string}_rate`>

export type RateLimitObserver = {
  limited(by: RateLimitKind): void
}

export type RateLimits = {
  perKey?: RateLimiter | undefined
  perAddress?: RateLimiter | undefined
  findAddress: ReturnType<typeof createAddressFinder>
}

/** An evicted subject starts with an empty bucket: a flood of addresses must not lock others out. */
const maxSubjects = 50_000
/** The share of a rate from which requests are added to Redis. Below it, each replica counts only its own. */
const sharedFrom = 0.1
/** The excess that is ignored, as a fraction of a request, because sums of fractions are not exact. */
const tolerance = 1e-6

/** How long requests are collected: a busy subject costs one command per interval. */
const gatherMs = 10

/**
 * Cap on overfill, in times the size of a bucket. Replicas overshoot before they hear of each other; the overshoot must
 * leak, or each would get a full rate.
 */
const maxOverfill = 20

type Options = {
  clock: Clock
  /** Separates the buckets of this limiter from those of others in Redis. */
  name: string
  redis?: Redis | undefined
}

/**
 * A leaky bucket per subject: fixed windows would allow twice the rate where two of them meet. With Redis all replicas
 * fill the same buckets, a few milliseconds late: no request waits for Redis.
 */
export function createRateLimiter(rate: Rate, { clock, name, redis }: Options) {
  const { requests, windowSeconds } = rate
  const msPerRequest = (windowSeconds * 1_000) / requests
  const buckets = new BoundedCache<string | number, Bucket>(maxSubjects)
  let unsharedBuckets = new Set<Bucket>()

  function leak(bucket: Bucket, now: number): void {
    // A clock that is set back must not make clients wait longer.
    const leaked = Math.max(now - bucket.leakedAt, 0) / msPerRequest
    bucket.used = Math.max(bucket.used - leaked, 0)
    bucket.unshared = Math.min(bucket.unshared, bucket.used)
    bucket.leakedAt = now
  }

  async function share(redis: Redis, bucket: Bucket): Promise<void> {
    const addedUs = bucket.unshared * msPerRequest * 1_000
    bucket.unshared = 0
    // Redis knows when a bucket is empty, which means other requests for another rate.
    const key = `rate:${name}:${windowSeconds}:{${bucket.subject}}`
    const maxUs = maxOverfill * windowSeconds * 1_000_000
    const aheadUs = await redis.fillBucket(key, addedUs, maxUs)
    // Not sent again after a failure: if Redis has added them, clients that keep to their rate would be rejected.
    if (aheadUs === undefined) return
    leak(bucket, clock.now().getTime())
    bucket.used = Math.max(bucket.used, aheadUs / 1_000 / msPerRequest + bucket.unshared)
  }

  function shareSoon(redis: Redis, bucket: Bucket): void {
    if (unsharedBuckets.size === 0) {
      setTimeout(() => {
        const changed = unsharedBuckets
        unsharedBuckets = new Set()
        for (const one of changed) share(redis, one)
      }, gatherMs)
    }
    unsharedBuckets.add(bucket)
  }

  return {
    take(subject: string | number) {
      const now = clock.now().getTime()
      let bucket = buckets.get(subject)
      if (!bucket) {
        bucket = { subject, used: 0, unshared: 0, leakedAt: now }
        buckets.set(subject, bucket)
      }
      leak(bucket, now)
      const isExceeded = bucket.used + 1 > requests + tolerance
      if (!isExceeded) {
        bucket.used += 1
        bucket.unshared += 1
        if (redis && bucket.used >= requests * sharedFrom) shareSoon(redis, bucket)
      }
      const { used } = bucket
      const msToNext = Math.max(used + 1 - requests, 0) * msPerRequest
      return {
        requests,
        windowSeconds,
        // Replicas that counted at the same time may have allowed a few more.
        used: Math.min(Math.ceil(used - tolerance), requests),
        isExceeded,
        secondsToFull: Math.ceil((used * msPerRequest) / 1_000),
        secondsToNext: Math.ceil(msToNext / 1_000),
        nextAt: () => new Date(Math.ceil(now + msToNext)).toISOString(),
      }
    },
  }
}

export function addRateLimitHeaders(headers: Record<string, string>, rateUsage: RateUsage): Record<string, string> {
  const { requests, windowSeconds, used, secondsToFull } = rateUsage
  const { 'ratelimit-policy': policy, ratelimit, ...others } = headers
  const [before, beforePolicy] = [ratelimit ? `${ratelimit}, ` : '', policy ? `${policy}, ` : '']
  return {
    ...others,
    'ratelimit-policy': `${beforePolicy}"burst";q=${requests};w=${windowSeconds}`,
    ratelimit: `${before}"burst";r=${requests - used};t=${secondsToFull}`,
  }
}

const whose: Record<RateLimitKind, string> = {
  key_rate: 'with this API key',
  address_rate: 'from this address',
  organisation_rate: 'of this kind by this organisation',
}

/** Returned rather than thrown: throwing would cost more than the rest of such a request. */
export const tooManyRequests = (rateUsage: RateUsage, limitedBy: RateLimitKind): ApiError => ({
  code: 'rate_limited',
  message: `More than ${rateUsage.requests} requests in ${rateUsage.windowSeconds} s ${whose[limitedBy]}. Wait until resets_at.`,
  context: { limited_by: limitedBy, limit: rateUsage.requests, used: rateUsage.used, resets_at: rateUsage.nextAt() },
  headers: { 'retry-after': String(rateUsage.secondsToNext) },
})

/** Returns a function that throws when an organisation exceeds its rate. */
export function limitOrganisations(limiter: RateLimiter, observer: RateLimitObserver) {
  return (request: { rateUsage?: RateUsage | undefined }, organisationId: number): void => {
    const rateUsage = limiter.take(organisationId)
    if (!rateUsage.isExceeded) return
    request.rateUsage = rateUsage
    observer.limited('organisation_rate')
    const { code, message, context, headers } = tooManyRequests(rateUsage, 'organisation_rate')
    throw new ServiceError(code, message, context, headers)
  }
}
