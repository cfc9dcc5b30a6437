import pino from 'pino'
import { readableLine } from './lib/readable_log.ts'
import { isoTime } from './lib/times.ts'

/** What is logged of a request. Never its path, query or headers: these can hold secrets. */
export type RequestLine = {
  level: 'error' | 'info' | 'debug'
  time: Date
  method: string
  /** The template, as `/api/v1/prompts/:prompt_id/history`. */
  route: string
  status: number
  ms: number
  org: string | undefined
  key: string | undefined
  requestId: string
  traceId: string | undefined
}

export type Log = Pick<pino.Logger, 'fatal' | 'error' | 'warn' | 'info' | 'debug'> & {
  request(line: RequestLine): void
  /** Resolves once everything is written; nothing can be logged after it. */
  close(): Promise<void>
}

/** Where lines go. */
type Lines = { write(line: string): void; flush(): void; close(): Promise<void> }

/** Lines of JSON on standard output; short ones for a person when that is a terminal. */
export function createLog(level: string): Log {
  const lines = level === 'silent' ? toNowhere : process.stdout.isTTY ? toTerminal : toFile()
  const atOnce = {
    write(line: string) {
      lines.write(line)
      // Only requests are worth gathering; what happens seldom is seen at once.
      lines.flush()
    },
  }
  const logger = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, atOnce)
  return Object.assign(logger, {
    request(line: RequestLine) {
      if (logger.isLevelEnabled(line.level)) lines.write(writeRequest(line))
    },
    close: lines.close,
  }) as Log
}

/**
 * By hand: pino takes several times as long, and there is one for every request. Of what is written, only the
 * method is in the caller's hand and not of a known shape.
 */
function writeRequest({ level, time, method, route, status, ms, org, key, requestId, traceId }: RequestLine): string {
  const start = `{"level":${pino.levels.values[level]},"time":"${isoTime(time)}","method":${JSON.stringify(method)}`
  const result = `,"route":"${route}","status":${status},"ms":${Math.round(ms * 100) / 100}`
  const caller = (org ? `,"org":"${org}"` : '') + (key ? `,"key":"${key}"` : '')
  const trace = traceId ? `,"trace_id":"${traceId}"` : ''
  return `${start}${result}${caller},"request_id":"${requestId}"${trace},"msg":"request"}\n`
}

const toNowhere: Lines = { write() {}, flush() {}, async close() {} }

const toTerminal: Lines = { ...toNowhere, write: (line) => void process.stdout.write(readableLine(line)) }

/** Lines wait for each other until there is so much of them, or for so long. */
const gatherLength = 16_384
const gatherMs = 100
/** What a reader that stalls may leave lying; beyond it lines are dropped. */
const maxLength = 16 * 1024 * 1024

/** Gathered, and not waited for: whoever reads the log must not hold up the service. */
function toFile(): Lines {
  const file = pino.destination({ dest: 1, sync: false, maxLength })
  // A reader that is gone is no reason to end.
  file.on('error', () => {})
  let gathered: string[] = []
  let length = 0
  let isClosed = false

  function flush(): void {
    if (length === 0 || isClosed) return
    file.write(gathered.join(''))
    gathered = []
    length = 0
  }

  const timer = setInterval(flush, gatherMs)
  timer.unref()
  process.on('exit', () => {
    flush()
    if (!isClosed) file.flushSync()
  })
  return {
    write(line) {
      gathered.push(line)
      length += line.length
      if (length >= gatherLength) flush()
    },
    flush,
    close() {
      clearInterval(timer)
      flush()
      isClosed = true
      const { promise, resolve } = Promise.withResolvers<void>()
      file.once('close', resolve)
      file.end()
      return promise
    },
  }
}
