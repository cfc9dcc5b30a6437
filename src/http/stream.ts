import type { RequestContext } from './request_context.ts'
import { accepts } from './static_file.ts'

type StreamOptions = {
  type: string
  fileName: string
  /** Asked before each text: whether the service is about to stop, so that the answer must be cut. */
  isStopping(): boolean
  /** Called once, with an error if the answer was cut by one. */
  onEnd(error?: unknown): void
}

/** A caller may let the answer wait for so long at once. */
const maxPauseMs = 30_000
/** What a caller gains by taking a text: 64 KiB a second are fast enough on average, however short the texts are. */
const gainedMs = (bytes: number): number => 100 + bytes / 64

/**
 * Answers with texts as they are read, no faster than the caller takes them, and compressed if the caller accepts that. The
 * first text, which like any may be empty, is read before, so that what fails at once is answered as an error. Whatever ends
 * the answer early cuts the connection: the end of the answer would say that it is whole. A caller who takes nothing, or too
 * little on average, is cut too, and would otherwise hold what the answer needs for as long as it likes.
 */
export async function replyStream(
  context: RequestContext,
  texts: AsyncIterator<string>,
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
  const first = await texts.next()
  // Nobody takes the body: of a HEAD, or because the caller has been answered with an error meanwhile.
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

  // The time that it takes to read a text is not the caller's.
  function startTimer(controller: ReadableStreamDefaultController, sentBytes = 0): void {
    patienceMs = Math.min(patienceMs + gainedMs(sentBytes), maxPauseMs)
    waitingSince = performance.now()
    timer = setTimeout(cut, patienceMs, controller)
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

  // No reason is given, because the runtime would print it: the reason is for the log.
  function cut(controller: ReadableStreamDefaultController, error?: unknown): void {
    end(error)
    controller.error()
  }

  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start: startTimer,
    async pull(controller) {
      stopTimer()
      try {
        for (;;) {
          if (isStopping()) return cut(controller)
          const { value, done } = await next
          if (settled) return
          if (done) {
            end()
            return controller.close()
          }
          // The next text is read while this one is on its way.
          next = texts.next()
          next.catch(() => {})
          const bytes = encoder.encode(value)
          if (bytes.length === 0) continue
          controller.enqueue(bytes)
          return startTimer(controller, bytes.length)
        }
      } catch (error) {
        cut(controller, error)
      }
    },
    cancel: () => end(),
  })
  return context.reply(200, isGzipped ? stream.pipeThrough(new CompressionStream('gzip')) : stream, headers)
}
