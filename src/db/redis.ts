import { Redis as Client } from 'ioredis'

export type Redis = {
  /** Raises the key and lets it expire at the given second, in one step; null, and no change, when it is missing. */
  takeSignals(key: string, number: number, expiresAt: number): Promise<number | null>
  set(key: string, value: number, mode: 'EXAT', expiresAt: number): Promise<unknown>
  /** Whether commands can be sent right now. */
  status: string
  disconnect(): void
}

const takeSignals = `
if redis.call('EXISTS', KEYS[1]) == 0 then return nil end
local taken = redis.call('INCRBY', KEYS[1], ARGV[1])
redis.call('EXPIREAT', KEYS[1], ARGV[2])
return taken`

/** Never waits for Redis: a command fails at once when it is away, and soon when it is slow. */
export function openRedis(url: string, keyPrefix: string): Redis {
  const client = new Client(url, {
    keyPrefix,
    // The commands of one turn go out in one write.
    enableAutoPipelining: true,
    commandTimeout: 50,
    connectTimeout: 2_000,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (attempt) => Math.min(attempt * 50, 1_000),
    scripts: { takeSignals: { lua: takeSignals, numberOfKeys: 1 } },
  })
  // Without a listener the client prints to the console; the requests themselves see the failure.
  client.on('error', () => {})
  return client as unknown as Redis
}
