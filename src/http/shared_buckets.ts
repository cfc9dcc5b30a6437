import type { Redis } from '../db/redis.ts'
import { createBreaker } from '../lib/breaker.ts'

/** Allows bursts of `requests`, refilled evenly over the window. */
export type Rate = { requests: number; windowSeconds: number }

/**
 * A leaky bucket: each request of the subject adds one to `used`, which falls steadily, by the whole rate in each window.
 * What is `unshared` of it was not added to Redis yet.
 */
export type Bucket = { readonly subject: string | number; used: number; unshared: number; leakedAt: number }

/** How long requests are gathered: a busy subject is one command in this time, however many its requests. */
const gatherMs = 10

/**
 * Keeps the time at which a bucket will be empty, in microseconds by the clock of Redis, which all replicas share. Moves it
 * on by what was added, to a full bucket at most, and returns how far ahead it is. What is no time is replaced.
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
  /** Called with what all replicas together had used of a bucket when Redis added this one's requests. */
  onShared(bucket: Bucket, used: number): void
  onBreaker?: ((isOpen: boolean) => void) | undefined
}

/** Adds the requests of this process to the buckets in Redis, and takes over what all replicas have used. */
export function createBucketSharing(redis: Redis, { prefix, rate, onShared, onBreaker }: Options) {
  const breaker = createBreaker({ failures: 2, retryMs: 1_000, onChange: (isOpen) => onBreaker?.(isOpen) })
  const windowUs = rate.windowSeconds * 1_000_000
  const usPerRequest = windowUs / rate.requests
  let changed = new Set<Bucket>()

  async function share(bucket: Bucket): Promise<void> {
    const addedUs = bucket.unshared * usPerRequest
    bucket.unshared = 0
    const key = `${prefix}:{${bucket.subject}}`
    const aheadUs = await breaker.attempt(() => redis.run(addScript, key, addedUs, windowUs))
    // After a failure nobody knows whether Redis has added it. It is not sent again: a sum that is too high would reject
    // callers who have kept to their rate.
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
