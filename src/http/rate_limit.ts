import type { Clock } from '../clock.ts'
import type { Redis } from '../db/redis.ts'
import type { ApiError, LimitedBy } from '../errors.ts'
import { BoundedCache } from '../lib/bounded_cache.ts'
import { type CountSharing, createCountSharing } from './shared_counts.ts'

export type Rate = { requests: number; windowSeconds: number }

/** What a subject has used of its rate, with the request that was just counted. */
export type Quota = Rate & { used: number; isExceeded: boolean; secondsLeft: number; resetsAt: () => string }

/** Counts the requests of each subject in fixed windows of time. */
type RateLimiter = { take(subject: string | number): Quota }

export type RateLimit = Extract<LimitedBy, 'key_rate' | 'address_rate'>

export type RateLimitObserver = {
  limited(by: RateLimit): void
  /** Called when the breaker opens after failures of Redis, and when it closes after a success. */
  breakerChanged(isOpen: boolean): void
}

export type RateLimits = { perKey?: RateLimiter | undefined; perAddress?: RateLimiter | undefined }

/** The requests of one subject in one window: all that this process knows of, and those not yet added to Redis. */
export type Count = { readonly subject: string | number; readonly window: number; used: number; unshared: number }

/** A subject that was evicted begins anew, so that a flood of addresses is let through rather than shut others out. */
const maxSubjects = 50_000
/** The part of a rate from which on its requests are added to Redis; below it the replicas do not know of each other's. */
const sharedFrom = 0.1

type Options = {
  clock: Clock
  /** Tells the counts of this limiter from those of another in Redis. */
  name: string
  redis?: Redis | undefined
  observe?: RateLimitObserver
}

/**
 * With Redis the counts are added up over all replicas, a few milliseconds behind, so that no request waits for Redis and
 * all of them go on without it.
 */
export function createRateLimiter(rate: Rate, { clock, name, redis, observe }: Options): RateLimiter {
  const { requests, windowSeconds } = rate
  const sharing: CountSharing | undefined =
    redis &&
    createCountSharing(redis, {
      prefix: `rate:${name}`,
      expireSeconds: windowSeconds,
      onBreaker: observe?.breakerChanged,
    })
  const counts = new BoundedCache<string | number, Count>(maxSubjects)
  let window = 0

  function findCount(subject: string | number): Count {
    const known = counts.get(subject)
    if (known) return known
    const count = { subject, window, used: 0, unshared: 0 }
    counts.set(subject, count)
    return count
  }

  return {
    take(subject) {
      const now = clock.now().getTime() / 1_000
      const current = Math.floor(now / windowSeconds)
      if (current !== window) {
        window = current
        counts.clear()
      }
      const count = findCount(subject)
      const isExceeded = count.used >= requests
      if (!isExceeded) {
        count.used += 1
        count.unshared += 1
        if (count.used >= requests * sharedFrom) sharing?.shareSoon(count)
      }
      const resetsAt = (current + 1) * windowSeconds
      return {
        requests,
        windowSeconds,
        // Replicas that counted at the same time may have let a few more pass.
        used: Math.min(count.used, requests),
        isExceeded,
        secondsLeft: Math.ceil(resetsAt - now),
        resetsAt: () => new Date(resetsAt * 1_000).toISOString(),
      }
    },
  }
}

/** Adds what is left of the rate to the RateLimit header fields, behind what they say of the month. */
export function addBurst(headers: Record<string, string>, quota: Quota): Record<string, string> {
  const { requests, windowSeconds, used, secondsLeft } = quota
  const { 'ratelimit-policy': policy, ratelimit, ...others } = headers
  const [before, beforePolicy] = [ratelimit ? `${ratelimit}, ` : '', policy ? `${policy}, ` : '']
  return {
    ...others,
    'ratelimit-policy': `${beforePolicy}"burst";q=${requests};w=${windowSeconds}`,
    ratelimit: `${before}"burst";r=${requests - used};t=${secondsLeft}`,
  }
}

const whose: Record<RateLimit, string> = { key_rate: 'with this API key', address_rate: 'from this address' }

/** An error to return: throwing one would cost more than the rest of such a request. */
export const tooManyRequests = (quota: Quota, limitedBy: RateLimit): ApiError => ({
  code: 'rate_limited',
  message: `More than ${quota.requests} requests in ${quota.windowSeconds} s ${whose[limitedBy]}. Wait until resets_at.`,
  context: { limited_by: limitedBy, limit: quota.requests, used: quota.used, resets_at: quota.resetsAt() },
  headers: { 'retry-after': String(quota.secondsLeft) },
})
