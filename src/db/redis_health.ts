import type { RedisClient } from './redis_client.ts'

/** Called when Redis stops serving, with the reason in a sentence and in a word, and when it serves again. */
export type OnRedisAvailability = (isUp: boolean, reason: string, code: string) => void

/** Two failures within this time count as down. A success counts as up only after it: some keys may still work. */
const settleMs = 3_000
const closedReason = 'the connection was closed'

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
export function createRedisHealth(onAvailability: OnRedisAvailability = () => {}) {
  let wasUp: boolean | undefined
  let code: string | undefined
  let [suspectUntil, downUntil] = [0, 0]
  /** Of the connection. The commands fail only with the fact that there is none. */
  let connectionError: Error | undefined

  function up(): void {
    code = undefined
    if (wasUp !== true) onAvailability(true, '', '')
    wasUp = true
  }

  function down(error: Error): void {
    // While it is down, only a new answer of the server says more than is known.
    const isNews = wasUp !== false || (isReply(error) && codeOf(error) !== code)
    if (!isNews) return
    code = codeOf(error)
    wasUp = false
    onAvailability(false, error.message, code)
  }

  return {
    /** Why Redis does not serve, in a word; undefined while it does. */
    get error() {
      return code
    },
    succeeded() {
      if (wasUp !== true && performance.now() > downUntil) up()
    },
    failed(error: Error) {
      const now = performance.now()
      if (isReply(error) || now < suspectUntil) {
        downUntil = now + settleMs
        down(isReply(error) ? error : (connectionError ?? error))
      }
      suspectUntil = now + settleMs
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
        suspectUntil = downUntil = 0
      })
      client.on('close', () => down(connectionError ?? new Error(closedReason)))
    },
  }
}
