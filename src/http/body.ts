import { ServiceError, unavailable } from '../errors.ts'
import { nextTurn } from '../lib/concurrency.ts'
import { invalidBody, smallBody } from '../lib/json.ts'
import type { RequestContext } from './request_context.ts'

export const mebibyte = 1024 * 1024
/** How long a whole body may take to arrive. A slow sender must not hold a request open. */
const arrivalMs = 10_000

const tooLarge = (maxBytes: number) =>
  invalidBody(`must be at most ${maxBytes < mebibyte ? `${maxBytes / 1024} KiB` : `${maxBytes / mebibyte} MiB`}`)

/** Called before bytes are buffered. Throws when there is no room. */
type Reserve = (bytes: number) => void

/** The memory for larger bodies. Otherwise 3,000 slow senders would hold 3 GB. The largest delivery of GitHub fits. */
const maxBytesInAll = 128 * mebibyte
const maxBytesPerTenant = 32 * mebibyte

let bytesInAll = 0
const bytesOfTenant = new Map<unknown, number>()

/** Reserves memory for a body that is not small, until the response. The runtime also frees the body then. */
function reserveLarge(context: RequestContext): Reserve {
  let [bytes, reserved] = [0, 0]
  const { org, key } = context.caller ?? {}
  // Anybody can send a delivery until its signature is checked. It must not use up the share of the organisation's keys.
  const tenant = key ? org : `${org} without a key`
  const take = (more: number) => {
    const own = (bytesOfTenant.get(tenant) ?? 0) + more
    if (own > maxBytesPerTenant || bytesInAll + more > maxBytesInAll) {
      throw unavailable('overload', 'Too many large bodies are in flight. Try again shortly.')
    }
    bytesInAll += more
    reserved += more
    if (own > 0) bytesOfTenant.set(tenant, own)
    else bytesOfTenant.delete(tenant)
  }
  return (more) => {
    bytes += more
    if (bytes <= smallBody) return
    // A reservation after the response would never be released.
    if (context.settled) throw context.deadlineError()
    context.onAnswered ??= () => take(-reserved)
    take(bytes - reserved)
  }
}

/** Reads a JSON body, plain or gzipped. The maximum and the reservation also apply to the decompressed text. */
export function readJsonText(context: RequestContext, maxBytes = mebibyte): Promise<string> {
  requireJson(context.request)
  const reserve = reserveLarge(context)
  const encoding = context.request.headers.get('content-encoding')
  if (encoding === null) return readBody(context, maxBytes, decodeInTurn, reserve)
  if (encoding.trim().toLowerCase() !== 'gzip') {
    throw invalidBody('must be uncompressed, or sent with "Content-Encoding: gzip"')
  }
  return readBody(context, maxBytes, (bytes) => bytes, reserve)
    .then((bytes) => decompress(bytes, maxBytes))
    .then((bytes) => {
      reserve(bytes.length)
      return decodeInTurn(bytes)
    })
}

/** Above 1 MiB. A thousand signals with the same metadata shrink to a two-hundredth, and a few kilobytes must not fill 4 MiB. */
const maxRatio = 300

const decompress = (bytes: Uint8Array, maxBytes: number): Promise<Uint8Array> =>
  new Promise((resolve, reject) => {
    const { gunzip } = process.getBuiltinModule('node:zlib')
    const allowed = Math.max(1, Math.floor((maxRatio * bytes.length) / mebibyte)) * mebibyte
    const maxOutputLength = Math.min(maxBytes, allowed)
    gunzip(bytes, { maxOutputLength }, (error, text) => {
      if (!error) resolve(text)
      else if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') reject(tooLarge(maxOutputLength))
      else reject(invalidBody('must be valid gzip'))
    })
  })

export function requireJson(request: Request): void {
  const type = request.headers.get('content-type') ?? ''
  if (type !== 'application/json' && !/^\s*application\/json\s*(;|$)/i.test(type)) {
    throw invalidBody('must be sent with "Content-Type: application/json"')
  }
}

/** Reads the bytes of the body as they were sent. The maximum is in whole kibibytes or mebibytes. */
export function readBody<T>(
  context: RequestContext,
  maxBytes: number,
  read: (bytes: Uint8Array) => T | Promise<T>,
  reserve = reserveLarge(context),
): Promise<T> {
  const { request } = context
  const length = request.headers.get('content-length')
  // Bun rejects lengths that differ. Sent twice, one is "20, 20".
  const announced = length === null ? 0 : Number.parseInt(length, 10)
  if (announced > maxBytes) throw tooLarge(maxBytes)
  reserve(announced)
  context.pauseDeadline(arrivalMs, () => invalidBody('must arrive within 10 seconds'))
  // A declared length bounds the body. Without one, each chunk is counted.
  const arriving = length === null ? readChunks(request, maxBytes, reserve) : request.bytes()
  return arriving.then(
    (bytes) => {
      context.isBodyRead = true
      context.resumeDeadline()
      return read(bytes)
    },
    (error) => {
      throw error instanceof ServiceError ? error : invalidBody('must arrive whole')
    },
  )
}

async function readChunks(request: Request, maxBytes: number, reserve: Reserve): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of request.body ?? []) {
    length += chunk.length
    if (length > maxBytes) throw tooLarge(maxBytes)
    reserve(chunk.length)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** Strict: replacing invalid bytes would record something that was not sent. */
const utf8 = new TextDecoder('utf-8', { fatal: true })

function decodeText(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw invalidBody('must be UTF-8')
  }
}

let lastTurn = Promise.resolve()

/** Large bodies are parsed in a turn of the event loop each: a small request then waits for one of them, not for all. */
export function decodeInTurn(bytes: Uint8Array): string | Promise<string> {
  if (bytes.length <= smallBody) return decodeText(bytes)
  lastTurn = lastTurn.then(nextTurn)
  return lastTurn.then(() => decodeText(bytes))
}
