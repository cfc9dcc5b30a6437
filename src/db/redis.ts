import { hash } from 'node:crypto'
import type { Redis as Client } from 'ioredis'
import { nextTurn } from '../lib/turns.ts'
import type { OnAvailability } from './availability.ts'
import { readCa } from './tls.ts'

export type Redis = {
  /** Runs a Lua script on one key. The text must stay constant: the server keeps each distinct one. */
  run(script: string, key: string, ...values: number[]): Promise<number | null>
  set(key: string, value: number, mode: 'EXAT', expiresAt: number): Promise<unknown>
  /** Whether commands can be sent right now. */
  status: string
  disconnect(): Promise<void>
}

type Options = { caFile?: string | undefined; onAvailability?: OnAvailability; commandTimeoutMs?: number }

/** Several times what a command takes, and little beside what a request may take. */
const defaultCommandTimeoutMs = 50

/** Opens a client that never waits for Redis: a command fails immediately when it is down, and soon when it is slow. */
export function openRedis(url: string, keyPrefix: string, options: Options = {}): Redis {
  const { caFile, onAvailability, commandTimeoutMs = defaultCommandTimeoutMs } = options
  // With `rediss:` the client verifies the certificate and the name by these authorities.
  const authorities = caFile ? { tls: readCa(caFile) } : {}
  let client: Client | undefined
  /** What the server knows each script by. */
  const shas = new Map<string, string>()
  // The service works without Redis, so the library, which took a fifth of the start, is loaded once it is ready.
  const connecting = nextTurn().then(async () => {
    const ioredis = await import('ioredis')
    client = new ioredis.Redis(url, {
      ...authorities,
      keyPrefix,
      // The commands of one turn of the event loop are sent in one write.
      enableAutoPipelining: true,
      commandTimeout: commandTimeoutMs,
      connectTimeout: 2_000,
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      retryStrategy: (attempt) => Math.min(attempt * 50, 1_000),
    })
    reportAvailability(client, onAvailability)
    return client
  })
  return {
    async run(script, key, ...values) {
      const connected = await connecting
      const sha = shas.get(script) ?? hash('sha1', script)
      shas.set(script, sha)
      // `defineCommand` could end the process: a pipeline that already gathers does not know a newly defined command.
      try {
        return (await connected.evalsha(sha, 1, key, ...values)) as number | null
      } catch (error) {
        if (!(error as Error).message.startsWith('NOSCRIPT')) throw error
        return (await connected.eval(script, 1, key, ...values)) as number | null
      }
    },
    set: async (key, value, mode, expiresAt) => (await connecting).set(key, value, mode, expiresAt),
    get status() {
      return client?.status ?? 'connecting'
    },
    async disconnect() {
      const connected = await connecting
      // Closing the connection on purpose is no loss of it.
      connected.removeAllListeners('close')
      connected.disconnect()
    },
  }
}

function reportAvailability(client: Client, onAvailability: OnAvailability | undefined): void {
  const closed = 'the connection was closed'
  let reason = closed
  let wasUp: boolean | undefined
  const report = (isUp: boolean) => {
    if (isUp === wasUp) return
    wasUp = isUp
    onAvailability?.(isUp, reason)
  }
  // Without a listener the client prints errors to the console; the commands themselves fail with them.
  client.on('error', (error: Error) => {
    reason = error.message
  })
  client.on('ready', () => {
    reason = closed
    report(true)
  })
  client.on('close', () => report(false))
}
