import { isatty } from 'node:tty'
import pino from 'pino'
import { isoTime } from './lib/times.ts'
import { readableLine } from './readable_log.ts'

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
type Lines = { write(line: string): void; request(line: RequestLine): void; close(): Promise<void> }

/** Lines of JSON on standard output; short ones for a person when that is a terminal. */
export function createLog(level: string): Log {
  const lines = level === 'silent' ? toNowhere : isatty(1) ? toTerminal : toFile()
  const logger = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, lines)
  return Object.assign(logger, {
    request(line: RequestLine) {
      if (logger.isLevelEnabled(line.level)) lines.request(line)
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

const toNowhere: Lines = { write() {}, request() {}, async close() {} }

const toTerminal: Lines = {
  ...toNowhere,
  write: (line) => void process.stdout.write(readableLine(line)),
  request: (line) => toTerminal.write(writeRequest(line)),
}

/** Requests wait for each other until there are so many of them, or for so long. */
const gatherNumber = 64
const gatherMs = 100
/** What a reader that stalls may leave lying; beyond it lines are dropped. */
const maxLength = 16 * 1024 * 1024

/** Gathered, and not waited for: whoever reads the log must not hold up the service. */
function toFile(): Lines {
  const file = pino.destination({ dest: 1, sync: false, maxLength })
  const ended = Promise.withResolvers<void>()
  file.once('close', ended.resolve)
  // A reader that is gone is no reason to end, nor one never to: nothing is left to be written then.
  file.on('error', ({ code }: NodeJS.ErrnoException) => {
    if (isClosed || code === 'EPIPE') ended.resolve()
  })
  // Not yet as text: many in a row are written faster than each in its turn.
  let gathered: RequestLine[] = []
  let isClosed = false

  function flush(): void {
    if (gathered.length === 0 || isClosed) return
    file.write(gathered.map(writeRequest).join(''))
    gathered = []
  }

  const timer = setInterval(flush, gatherMs)
  timer.unref()
  process.on('exit', () => {
    flush()
    if (!isClosed) file.flushSync()
  })
  return {
    // What happens seldom is seen at once.
    write(line) {
      flush()
      if (!isClosed) file.write(line)
    },
    request(line) {
      gathered.push(line)
      if (gathered.length >= gatherNumber) flush()
    },
    close() {
      clearInterval(timer)
      flush()
      isClosed = true
      file.end()
      return ended.promise
    },
  }
}
