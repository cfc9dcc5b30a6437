import { hash } from 'node:crypto'
import { within } from '../lib/deadline.ts'
import { nextTurn } from '../lib/turns.ts'
import { connectRedis, type RedisClient, type RedisConnection } from './redis_client.ts'
import { createRedisHealth, type OnRedisAvailability } from './redis_health.ts'

export type Redis = {
  /** Runs a Lua script on one key. The text must stay constant: the server keeps each distinct one. */
  run(script: string, key: string, ...values: number[]): Promise<number | null>
  set(key: string, value: number, mode: 'EXAT', expiresAt: number): Promise<unknown>
  /** The server that holds a key. In a cluster one may fail while the others work. */
  nodeOf(key: string): string
  /** Whether commands can be sent right now. */
  status: string
  /** Why commands fail, in a word; undefined while they do not. */
  error: string | undefined
  disconnect(): Promise<void>
}

type Options = { caFile?: string | undefined; onAvailability?: OnRedisAvailability; commandTimeoutMs?: number }

/** Several times what a command takes, and little beside what a request may take. */
const defaultCommandTimeoutMs = 50
const checkEveryMs = 1_000
/** The keys that are checked, enough for each server of a cluster to hold one. */
const checkKeys = Array.from({ length: 64 }, (_, n) => `check:{${n}}`)

/** Runs every command that the service needs, because those in its scripts can fail unseen. */
const checkScript = `
redis.call('SET', KEYS[1], redis.call('TIME')[1], 'PX', 1000)
redis.call('INCRBY', KEYS[1], redis.call('EXISTS', KEYS[1]))
redis.call('EXPIREAT', KEYS[1], redis.call('GET', KEYS[1]))
return redis.call('DEL', KEYS[1])`

/** Opens a client that never waits for Redis: a command fails immediately when it is down, and soon when it is slow. */
export function openRedis(url: string, keyPrefix: string, options: Options = {}): Redis {
  const { caFile, onAvailability, commandTimeoutMs = defaultCommandTimeoutMs } = options
  const health = createRedisHealth(onAvailability)
  let connection: RedisConnection | undefined
  /** What the server knows each script by. */
  const shas = new Map<string, string>()
  const nodeOf = (key: string) => connection?.nodeOf(key) ?? ''
  // The service works without Redis, so the library, which took a fifth of the start, is loaded once it is ready.
  const connecting = nextTurn().then(async () => {
    connection = await connectRedis(url, { caFile, keyPrefix, commandTimeout: commandTimeoutMs })
    health.watch(connection.client)
    connection.client.on('ready', check)
    return connection
  })
  const checks = setInterval(check, checkEveryMs).unref()

  /** The client of a cluster has commands wait for a connection and for servers that are lost. These never do. */
  async function send<T>(key: string, command: (client: RedisClient) => Promise<T>): Promise<T> {
    const { client, refresh } = await connecting
    if (client.status !== 'ready') throw new Error('there is no connection to Redis')
    // The client follows a key to another server only when no other key is in the same write.
    const retryMoved = async (error: Error) => {
      if (!refresh || !error.message.startsWith('MOVED')) throw error
      await refresh()
      return command(client)
    }
    try {
      if (nodeOf(key) === '') throw new Error('no server of the cluster holds this key')
      const result = await within(2 * commandTimeoutMs, command(client).catch(retryMoved))
      health.succeeded()
      return result
    } catch (error) {
      if (!isUnknownScript(error)) health.failed(error as Error)
      throw error
    }
  }

  async function run(script: string, key: string, ...values: number[]): Promise<number | null> {
    const sha = shas.get(script) ?? hash('sha1', script)
    shas.set(script, sha)
    // `defineCommand` could end the process: a pipeline that already gathers does not know a newly defined command.
    try {
      return (await send(key, (client) => client.evalsha(sha, 1, key, ...values))) as number | null
    } catch (error) {
      if (!isUnknownScript(error)) throw error
      return (await send(key, (client) => client.eval(script, 1, key, ...values))) as number | null
    }
  }

  function check(): void {
    if (connection?.client.status !== 'ready') return
    const keyOfNode = new Map(checkKeys.map((key) => [nodeOf(key), key]))
    for (const key of keyOfNode.values()) run(checkScript, key).catch(() => {})
  }

  return {
    run,
    set: (key, value, mode, expiresAt) => send(key, (client) => client.set(key, value, mode, expiresAt)),
    nodeOf,
    get status() {
      return connection?.client.status ?? 'connecting'
    },
    get error() {
      return health.error
    },
    async disconnect() {
      clearInterval(checks)
      const { client } = await connecting
      // Closing the connection on purpose is no loss of it.
      client.removeAllListeners('close')
      client.disconnect()
    },
  }
}

const isUnknownScript = (error: unknown): boolean => (error as Error).message.startsWith('NOSCRIPT')
