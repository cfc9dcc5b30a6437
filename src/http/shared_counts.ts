import type { Redis } from '../db/redis.ts'
import { createBreaker } from '../lib/breaker.ts'
import type { Count } from './rate_limit.ts'

/** Adds the counts of this process to those in Redis, and takes over the sums. */
export type CountSharing = { shareSoon(count: Count): void }

/** How long requests are gathered: a busy subject is one command in this time, however many its requests. */
const gatherMs = 10

/** Raises a count and lets it expire. What is no number is replaced. */
const addScript = `
local sum = redis.pcall('INCRBY', KEYS[1], ARGV[1])
if type(sum) ~= 'number' then
  redis.call('SET', KEYS[1], ARGV[1])
  sum = tonumber(ARGV[1])
end
redis.call('EXPIRE', KEYS[1], ARGV[2])
return sum`

type Options = { prefix: string; expireSeconds: number; onBreaker?: ((isOpen: boolean) => void) | undefined }

export function createCountSharing(redis: Redis, { prefix, expireSeconds, onBreaker }: Options): CountSharing {
  const breaker = createBreaker({ failures: 2, retryMs: 1_000, onChange: (isOpen) => onBreaker?.(isOpen) })
  let changed = new Set<Count>()

  async function share(count: Count): Promise<void> {
    const { subject, window, unshared } = count
    count.unshared = 0
    const key = `${prefix}:{${subject}}:${window}`
    const sum = await breaker.attempt(() => redis.run(addScript, key, unshared, expireSeconds))
    // After a failure nobody knows whether Redis has added it. It is not sent again: a sum that is too high would reject
    // callers who have kept to their rate.
    if (typeof sum === 'number') count.used = Math.max(count.used, sum + count.unshared)
  }

  function shareAll(): void {
    const counts = changed
    changed = new Set()
    for (const count of counts) share(count)
  }

  return {
    shareSoon(count) {
      if (changed.size === 0) setTimeout(shareAll, gatherMs)
      changed.add(count)
    },
  }
}
