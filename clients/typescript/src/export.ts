import type { ExportedSignal } from './api.ts'
import { type CallOptions, PromptSignalsError } from './request.ts'

/** In timeouts: an export that looks for a rare value sends nothing meanwhile. */
const longestSilence = 6

/** Reads the lines of an export. When the connection breaks, it opens the export again after the last complete line. */
export async function* readExport(
  open: (after?: number) => Promise<Response>,
  { signal: stop, timeoutMs, after: first }: CallOptions & { timeoutMs: number; after: number | undefined },
): AsyncGenerator<ExportedSignal> {
  let after = first
  for (;;) {
    const startedAfter = after
    try {
      for await (const line of linesOf(await open(after), timeoutMs * longestSilence)) {
        const signal: ExportedSignal = JSON.parse(line)
        yield signal
        after = signal.id
      }
      return
    } catch (error) {
      stop?.throwIfAborted()
      if (error instanceof PromptSignalsError) throw error
      // A connection that brings no line would break for ever.
      if (after !== startedAfter) continue
      const reason = error instanceof Error ? error.message : error
      throw new PromptSignalsError(`The export was cut off: ${reason}`, { status: 0, code: 'network_error' }, error)
    }
  }
}

async function* linesOf({ body }: Response, maxSilenceMs: number): AsyncGenerator<string> {
  const reader = (body as ReadableStream<Uint8Array<ArrayBuffer>>).pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await within(maxSilenceMs, reader.read())
      if (done && rest === '') return
      if (done) throw new Error('The export ended within a line.')
      const lines = (rest + value).split('\n')
      rest = lines.pop() ?? ''
      yield* lines
    }
  } finally {
    // The caller may stop early.
    await reader.cancel().catch(() => {})
  }
}

async function within<Result>(ms: number, result: Promise<Result>): Promise<Result> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Nothing came within ${ms} ms.`)), ms)
  })
  return Promise.race([result, silence]).finally(() => clearTimeout(timer))
}
