import type { ExportedSignal } from './api.ts'
import { PromptSignalsError } from './request.ts'

/** Reads the lines of an export. When the connection breaks, it opens the export again after the last complete line. */
export async function* readExport(open: (after?: number) => Promise<Response>): AsyncGenerator<ExportedSignal> {
  let after: number | undefined
  for (;;) {
    const startedAfter = after
    try {
      for await (const line of linesOf(await open(after))) {
        const signal: ExportedSignal = JSON.parse(line)
        yield signal
        after = signal.id
      }
      return
    } catch (error) {
      // What the service refuses stays refused, and a connection that brings no line would break for ever.
      if (error instanceof PromptSignalsError || after === startedAfter) throw error
    }
  }
}

async function* linesOf({ body }: Response): AsyncGenerator<string> {
  const reader = (body as ReadableStream<Uint8Array<ArrayBuffer>>).pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
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
