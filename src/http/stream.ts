import { restartIdleTimeout } from '../platform.ts'
import type { RequestContext } from './request_context.ts'
import { accepts } from './static_file.ts'

type StreamOptions = {
  type: string
  fileName: string
  /** Checked before each chunk: a service that is about to stop aborts the response. */
  isStopping(): boolean
  /** Called once, with the error that aborted the response, if any. */
  onEnd(error?: unknown): void
}

const maxPauseMs = 30_000
/** Extra patience earned per chunk. Clients that read 64 KiB per second on average are fast enough. */
const creditMs = (bytes: number): number => 100 + bytes / 64

/**
 * Streams chunks with back-pressure. A late error aborts the connection: a clean end would mean that the response is
 * complete. Slow clients are disconnected, because each export holds a permit.
 */
export async function replyStream(
  context: RequestContext,
  chunks: AsyncIterator<string>,
  { type, fileName, isStopping, onEnd }: StreamOptions,
): Promise<Response> {
  const { request } = context
  const isGzipped = accepts(request.headers.get('accept-encoding'), 'gzip')
  const headers = {
    'content-type': type,
    'content-disposition': `attachment; filename="${fileName}"`,
    'cache-control': 'no-store',
    vary: 'Accept-Encoding',
    ...(isGzipped ? { 'content-encoding': 'gzip' } : {}),
  }
  const first = await chunks.next()
  // No body is sent: for a HEAD, or because the request has timed out meanwhile.
  if (request.method === 'HEAD' || context.settled) {
    onEnd()
    return context.reply(200, null, headers)
  }

  const encoder = new TextEncoder()
  let next = Promise.resolve(first)
  let timer: ReturnType<typeof setTimeout> | undefined
  let patienceMs = maxPauseMs
  let waitingSince = 0
  let settled = false

  // The time to read a chunk from the database does not count against the client.
  function startTimer(controller: ReadableStreamDefaultController, sentBytes = 0): void {
    patienceMs = Math.min(patienceMs + creditMs(sentBytes), maxPauseMs)
    waitingSince = performance.now()
    timer = setTimeout(abort, patienceMs, controller)
  }

  function stopTimer(): void {
    clearTimeout(timer)
    patienceMs -= performance.now() - waitingSince
  }

  function end(error?: unknown): void {
    clearTimeout(timer)
    if (settled) return
    settled = true
    onEnd(error)
  }

  // The runtime would print a reason, which is only for the log.
  function abort(controller: ReadableStreamDefaultController, error?: unknown): void {
    end(error)
    controller.error()
  }

  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start: startTimer,
    async pull(controller) {
      stopTimer()
      try {
        for (;;) {
          if (isStopping()) return abort(controller)
          // A long search sends nothing, and gzip keeps short chunks back.
          restartIdleTimeout(request, context.receiver)
          const { value, done } = await next
          if (settled) return
          if (done) {
            end()
            return controller.close()
          }
          // The next chunk is read while this one is sent.
          next = chunks.next()
          next.catch(() => {})
          const bytes = encoder.encode(value)
          if (bytes.length === 0) continue
          controller.enqueue(bytes)
          return startTimer(controller, bytes.length)
        }
      } catch (error) {
        abort(controller, error)
      }
    },
    cancel: () => end(),
  })
  return context.reply(200, isGzipped ? stream.pipeThrough(new CompressionStream('gzip')) : stream, headers)
}
