import { isatty } from 'node:tty'
import pino from 'pino'
import { oneLine } from './lib/texts.ts'

/** Has the template of the route, never the path, query or headers, which can hold secrets. */
type RequestLine = {
  level: 'error' | 'warn' | 'info' | 'debug'
  time: Date
  method: string
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
  /** Resolves once everything is written, or the reader has stalled. Nothing can be logged after it. */
  close(): Promise<void>
}

type Lines = { write(line: string): void; request(line: RequestLine): void; close(): Promise<void> }

/** Writes JSON lines to standard output, or short lines for people if that is a terminal. */
export function createLog(level: string): Log {
  const lines = level === 'silent' || isatty(1) ? toTerminal : toFile()
  const logger = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, lines)
  return Object.assign(logger, {
    request(line: RequestLine) {
      if (logger.isLevelEnabled(line.level)) lines.request(line)
    },
    close: lines.close,
  }) as Log
}

/** Builds the line by hand, because pino is slow. Clients choose only the method freely, so only that is escaped. */
function writeRequest({ level, time, method, route, status, ms, org, key, requestId, traceId }: RequestLine): string {
  const start = `{"level":${pino.levels.values[level]},"time":"${time.toISOString()}","method":${JSON.stringify(method)}`
  const result = `,"route":"${route}","status":${status},"ms":${Math.round(ms * 100) / 100}`
  const caller = (org ? `,"org":"${org}"` : '') + (key ? `,"key":"${key}"` : '')
  const trace = traceId ? `,"trace_id":"${traceId}"` : ''
  return `${start}${result}${caller},"request_id":"${requestId}"${trace},"msg":"request"}\n`
}

const toTerminal: Lines = {
  write: (line) => void process.stdout.write(readableLine(line)),
  request: (line) => toTerminal.write(writeRequest(line)),
  async close() {},
}

export function readableLine(json: string): string {
  const { level, time, msg = '', ...fields } = JSON.parse(json)
  const words = msg === 'request' ? requestWords(fields) : [msg, ...Object.entries(fields).map(fieldWord)]
  const text = [time.slice(11, 19), (pino.levels.labels[level] ?? '').toUpperCase().padEnd(5), ...words].join(' ')
  return `${oneLine(text).trimEnd()}\n`
}

const requestWords = ({ method, route, status, ms, org, key, request_id }: Record<string, unknown>) =>
  [method, route, status, `${ms} ms`, org, key, request_id].filter((word) => word !== undefined)

function fieldWord([name, value]: [string, unknown]): string {
  // Without the stack, which is in the JSON log.
  if (name === 'err') return `${name}=${(value as { message?: string }).message}`
  return `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`
}

/** Request lines are written in batches of this size, or after this time: sonic-boom measures its buffer with every write. */
const batchSize = 256
const batchMs = 100
/** Bytes to buffer while the reader of the log stalls. Beyond them, lines are dropped. */
const maxLength = 16 * 1024 * 1024

/** A write that takes longer has failed, as on a full disk, or its reader has stalled. */
const stalledAfterMs = 1_000

/** Writes without waiting: a slow reader of the log must not block the service. */
function toFile(): Lines {
  const file = pino.destination({ dest: 1, sync: false, maxLength })
  let writingSince = 0
  file.on('write', () => {
    writingSince = performance.now()
  })
  file.on('drain', () => {
    writingSince = 0
  })
  // At the exit, pino calls it too. It retries a failed write forever.
  const flushSync = file.flushSync.bind(file)
  file.flushSync = () => {
    const isStalled = writingSince > 0 && performance.now() - writingSince > stalledAfterMs
    if (!isClosed && !isStalled) flushSync()
  }
  const ended = Promise.withResolvers<void>()
  file.once('close', ended.resolve)
  // When the reader of the log has gone, the service continues, and does not wait for it when it stops.
  file.on('error', ({ code }: NodeJS.ErrnoException) => {
    if (isClosed || code === 'EPIPE') ended.resolve()
  })
  let batch: RequestLine[] = []
  let isClosed = false

  function write(text: string): void {
    writingSince ||= performance.now()
    file.write(text)
  }

  function flush(): void {
    if (batch.length === 0 || isClosed) return
    write(batch.map(writeRequest).join(''))
    batch = []
  }

  const timer = setInterval(flush, batchMs)
  timer.unref()
  process.on('exit', () => {
    flush()
    file.flushSync()
  })
  return {
    write(line) {
      flush()
      if (!isClosed) write(line)
    },
    request(line) {
      batch.push(line)
      if (batch.length >= batchSize) flush()
    },
    close() {
      clearInterval(timer)
      flush()
      isClosed = true
      file.end()
      setTimeout(ended.resolve, stalledAfterMs).unref()
      return ended.promise
    },
  }
}
