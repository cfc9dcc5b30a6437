import { nextTurn } from '../lib/concurrency.ts'
import { within } from '../lib/deadline.ts'
import { connectRedis, type RedisClient, type RedisConnection } from './redis_client.ts'

/** The commands resolve with undefined when Redis does not answer. */
export type Redis = {
  /** Raises a counter by one, and sets its expiry in the same step. Null for a counter that is missing. */
  raiseCounter(key: string, expiresAt: number): Promise<number | null | undefined>
  setCounter(key: string, value: number, expiresAt: number): Promise<unknown>
  /** Fills a bucket that leaks. Returns when it will be empty, in microseconds from now. */
  fillBucket(key: string, addedUs: number, maxUs: number): Promise<number | undefined>
  /** The server that holds a key. In a cluster one may fail while the others work. */
  nodeOf(key: string): string
  /** Whether commands can be sent right now. */
  status: string
  /** Why commands fail, in a word; undefined while they do not. */
  error: string | undefined
  disconnect(): Promise<void>
}

/** Called when Redis stops serving, with the reason in a sentence and in a word, and when it serves again. */
type OnAvailability = (isUp: boolean, reason: string, code: string) => void

type Options = { caFile?: string | undefined; onAvailability?: OnAvailability; commandTimeoutMs?: number }

/** Several times what a command takes, and little beside what a request may take. */
const defaultCommandTimeoutMs = 50
const checkEveryMs = 1_000
/** The keys that are checked, enough for each server of a cluster to hold one. */
const checkKeys = Array.from({ length: 64 }, (_, n) => `check:{${n}}`)
/** Two failures of a server within this time, two checks, count as down, and so does it until this time after the last one. */
const settleMs = 2_000

export const scripts = {
  /** Removes a counter that cannot be raised, so that it is set from Postgres again. */
  raiseCounter: `
if redis.call('EXISTS', KEYS[1]) == 0 then return nil end
local count = redis.pcall('INCRBY', KEYS[1], 1)
if type(count) ~= 'number' then
  redis.call('DEL', KEYS[1])
  return nil
end
redis.call('EXPIREAT', KEYS[1], ARGV[1])
return count`,
  /** Stores when the bucket will be empty, in microseconds on Redis's clock. */
  fillBucket: `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local emptyAt = math.max(tonumber(redis.pcall('GET', KEYS[1])) or 0, now)
emptyAt = math.min(emptyAt + ARGV[1], now + ARGV[2])
redis.call('SET', KEYS[1], string.format('%.0f', emptyAt), 'PX', math.max(math.ceil((emptyAt - now) / 1000), 1))
return math.ceil(emptyAt - now)`,
  /** Runs every command that the service needs, because those in its scripts can fail unseen. */
  check: `
redis.call('SET', KEYS[1], redis.call('TIME')[1], 'PX', 1000)
redis.call('INCRBY', KEYS[1], redis.call('EXISTS', KEYS[1]))
redis.call('EXPIREAT', KEYS[1], redis.call('GET', KEYS[1]))
return redis.call('DEL', KEYS[1])`,
}

/** The client with a method for each script. */
type ScriptedClient = Record<keyof typeof scripts, (key: string, ...values: number[]) => Promise<number | null>>

/** Opens a client that never waits for Redis: a command fails immediately when it is down, and soon when it is slow. */
export function openRedis(url: string, keyPrefix: string, options: Options = {}): Redis {
  const { caFile, onAvailability, commandTimeoutMs = defaultCommandTimeoutMs } = options
  const health = createHealth(onAvailability)
  let connection: RedisConnection | undefined
  const nodeOf = (key: string) => connection?.nodeOf(key) ?? ''
  // The service works without Redis, so the library, which took a fifth of the start, is loaded once it is ready.
  const connecting = nextTurn().then(async () => {
    connection = await connectRedis(url, { caFile, keyPrefix, commandTimeout: commandTimeoutMs, scripts })
    health.watch(connection.client)
    connection.client.on('ready', check)
    return connection
  })
  const checks = setInterval(check, checkEveryMs).unref()

  /** Fails immediately where the client of a cluster would queue. A server that is down gets only checks. */
  async function send<T>(
    key: string,
    command: (client: RedisClient) => Promise<T>,
    isCheck = false,
  ): Promise<T | undefined> {
    const { client, refresh } = await connecting
    const node = nodeOf(key)
    if (client.status !== 'ready' || (health.isDown(node) && !isCheck)) return undefined
    // The client follows a key to another server only when no other key is in the same write.
    const retryMoved = async (error: Error) => {
      if (!refresh || !error.message.startsWith('MOVED')) throw error
      await refresh()
      return command(client)
    }
    try {
      if (node === '') throw new Error('no server of the cluster holds this key')
      const result = await within(2 * commandTimeoutMs, command(client).catch(retryMoved))
      health.succeeded()
      return result
    } catch (error) {
      health.failed(node, error as Error)
      return undefined
    }
  }

  const run = (script: keyof typeof scripts, key: string, ...values: number[]) =>
    send(key, (client) => (client as unknown as ScriptedClient)[script](key, ...values), script === 'check')

  function check(): void {
    if (connection?.client.status !== 'ready') return
    const keyOfNode = new Map(checkKeys.map((key) => [nodeOf(key), key]))
    for (const key of keyOfNode.values()) run('check', key)
  }

  return {
    raiseCounter: (key, expiresAt) => run('raiseCounter', key, expiresAt),
    setCounter: (key, value, expiresAt) => send(key, (client) => client.set(key, value, 'EXAT', expiresAt)),
    fillBucket: async (key, addedUs, maxUs) => (await run('fillBucket', key, addedUs, maxUs)) ?? undefined,
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

/** An error that the server answered with, such as NOPERM, READONLY or MOVED. */
const isReply = (error: Error): boolean => error.name === 'ReplyError'

/** A short name for an error: the server's own, or that of the network. */
function codeOf(error: Error & { code?: unknown }): string {
  // So says Redis 7.0 of a command in a script.
  if (error.message.startsWith("ERR The user executing the script can't")) return 'NOPERM'
  if (isReply(error)) return /^[A-Z]+\b/.exec(error.message)?.[0] ?? 'ERR'
  if (typeof error.code === 'string') return error.code
  return /timed out|in time/.test(error.message) ? 'TIMEOUT' : 'CLOSED'
}

/** Derives from commands and from the connection whether Redis serves, and why not. */
function createHealth(onAvailability: OnAvailability = () => {}) {
  let wasUp: boolean | undefined
  let code: string | undefined
  /** The servers that failed lately, and until when that counts. */
  const failing = new Map<string, { isDown: boolean; until: number }>()
  /** Of the connection. The commands fail only with the fact that there is none. */
  let connectionError: Error | undefined

  const findFailing = (node: string) => {
    const known = failing.get(node)
    return known && performance.now() < known.until ? known : undefined
  }
  const isDown = (node: string): boolean => findFailing(node)?.isDown === true

  function down(error: Error): void {
    // While it is down, only a new answer of the server says more than is known.
    const isNews = wasUp !== false || (isReply(error) && codeOf(error) !== code)
    if (!isNews) return
    code = codeOf(error)
    wasUp = false
    onAvailability(false, error.message, code)
  }

  return {
    isDown,
    /** Why Redis does not serve, in a word; undefined while it does. */
    get error() {
      return code
    },
    succeeded() {
      if (wasUp === true || [...failing.keys()].some(isDown)) return
      code = undefined
      wasUp = true
      onAvailability(true, '', '')
    },
    failed(node: string, error: Error) {
      const isRepeated = findFailing(node) !== undefined
      failing.set(node, { isDown: isReply(error) || isRepeated, until: performance.now() + settleMs })
      if (isDown(node)) down(isReply(error) ? error : (connectionError ?? error))
    },
    watch(client: RedisClient): void {
      // Without a listener the client prints errors to the console; the commands themselves fail with them.
      client.on('error', (error: Error & { lastNodeError?: Error }) => {
        connectionError = error.lastNodeError ?? error
        // Sentinels that cannot be reached close nothing.
        if (client.status !== 'ready') down(connectionError)
      })
      client.on('ready', () => {
        connectionError = undefined
        failing.clear()
      })
      client.on('close', () => down(connectionError ?? new Error('the connection was closed')))
    },
  }
}
