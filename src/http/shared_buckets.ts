import type { Redis } from '../db/redis.ts'
import { createBreaker } from '../lib/breaker.ts'

/** Allows bursts of `requests`, refilled evenly over the window. */
export type Rate = { requests: number; windowSeconds: number }

/**
 * A leaky bucket: each request of the subject adds one to `used`, which drains at the rate. `unshared` is the part that
 * was not added to Redis yet.
 */
export type Bucket = { readonly subject: string | number; used: number; unshared: number; leakedAt: number }

/** How long requests are collected: a busy subject costs one command per interval. */
const gatherMs = 10

/**
 * Stores when a bucket will be empty, in microseconds by the clock of Redis, which all replicas share. Moves that time
 * ahead by the added requests, up to a full bucket, and returns how far ahead it is. Replaces an invalid value.
 */
const addScript = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local emptyAt = math.max(tonumber(redis.pcall('GET', KEYS[1])) or 0, now)
emptyAt = math.min(emptyAt + ARGV[1], now + ARGV[2])
redis.call('SET', KEYS[1], string.format('%.0f', emptyAt), 'PX', math.max(math.ceil((emptyAt - now) / 1000), 1))
return math.ceil(emptyAt - now)`

type Options = {
  prefix: string
  rate: Rate
  /** Called with the use by all replicas, after Redis has added the requests of this one. */
  onShared(bucket: Bucket, used: number): void
  onBreaker?: ((isOpen: boolean) => void) | undefined
}

/** Adds the requests of this process to the buckets in Redis, and reads the use by all replicas. */
export function createBucketSharing(redis: Redis, { prefix, rate, onShared, onBreaker }: Options) {
  const breaker = createBreaker((isOpen) => onBreaker?.(isOpen))
  const windowUs = rate.windowSeconds * 1_000_000
  const usPerRequest = windowUs / rate.requests
  let changed = new Set<Bucket>()

  async function share(bucket: Bucket): Promise<void> {
    const addedUs = bucket.unshared * usPerRequest
    bucket.unshared = 0
    const key = `${prefix}:{${bucket.subject}}`
    const aheadUs = await breaker.attempt(() => redis.run(addScript, key, addedUs, windowUs))
    // After a failure, Redis may or may not have added the requests. They are not sent again: counting them twice would
    // reject clients that keep to their rate.
    if (typeof aheadUs === 'number') onShared(bucket, aheadUs / usPerRequest)
  }

  function shareAll(): void {
    const buckets = changed
    changed = new Set()
    for (const bucket of buckets) share(bucket)
  }

  return function shareSoon(bucket: Bucket): void {
    if (changed.size === 0) setTimeout(shareAll, gatherMs)
    changed.add(bucket)
  }
}
