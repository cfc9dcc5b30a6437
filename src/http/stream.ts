import type { Exchange } from './exchange.ts'
import { accepts } from './static_file.ts'

type StreamOptions = {
  type: string
  fileName: string
  /** Asked before each text: whether the service is about to stop, so that the answer must be cut. */
  isStopping(): boolean
  /** Called once, with an error if the answer was cut by one. */
  onEnd(error?: unknown): void
}

/** A caller has this long to take one text. One who takes longer would hold what the answer needs for ever. */
const paceMs = 30_000

/**
 * Answers with texts as they are read, no faster than the caller takes them, and compressed if the caller accepts that.
 * The first text, which like any may be empty, is read before, so that what fails at once is answered as an error.
 * Whatever ends the answer early cuts the connection: the end of the answer would say that it is whole.
 */
export async function replyStream(
  exchange: Exchange,
  texts: AsyncIterator<string>,
  { type, fileName, isStopping, onEnd }: StreamOptions,
): Promise<Response> {
  const { request } = exchange
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
  if (request.method === 'HEAD' || exchange.isOver) {
    onEnd()
    return exchange.reply(200, null, headers)
  }

  const encoder = new TextEncoder()
  let next = Promise.resolve(first)
  let timer: ReturnType<typeof setTimeout> | undefined
  let isOver = false

  function end(error?: unknown): void {
    clearTimeout(timer)
    if (isOver) return
    isOver = true
    onEnd(error)
  }

  // Cut without a reason, because the runtime would print it: the reason is for the log.
  function cut(controller: ReadableStreamDefaultController, error?: unknown): void {
    end(error)
    controller.error()
  }

  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      timer = setTimeout(cut, paceMs, controller)
    },
    async pull(controller) {
      clearTimeout(timer)
      try {
        for (let text = ''; text === ''; ) {
          if (isStopping()) return cut(controller)
          const { value, done } = await next
          if (isOver) return
          if (done) {
            end()
            return controller.close()
          }
          text = value
          // Read while this one is on its way.
          next = texts.next()
          next.catch(() => {})
          if (text !== '') controller.enqueue(encoder.encode(text))
        }
        timer = setTimeout(cut, paceMs, controller)
      } catch (error) {
        cut(controller, error)
      }
    },
    cancel: () => end(),
  })
  return exchange.reply(200, isGzipped ? stream.pipeThrough(new CompressionStream('gzip')) : stream, headers)
}
