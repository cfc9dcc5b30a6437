// The entry point of the engine's thread, which handles one request after the other and replies to each in order.
import { type Engine, openEngine } from './embedded_engine.ts'
import type { Bytes } from './wire.ts'

export type EngineRequest = { open: string } | { execute: Bytes } | { close: true }
export type EngineReply = { bytes: Bytes } | { error: string } | { panic: string }

const thread = globalThis as unknown as {
  onmessage: (event: { data: EngineRequest }) => void
  postMessage(reply: EngineReply, transfer?: ArrayBuffer[]): void
}

let engine: Engine
let last: Promise<void> = Promise.resolve()

thread.onmessage = ({ data: request }) => {
  last = last.then(() => reply(request))
}

async function reply(request: EngineRequest): Promise<void> {
  try {
    const bytes = await handle(request)
    thread.postMessage({ bytes }, [bytes.buffer])
  } catch (error) {
    thread.postMessage({ error: error instanceof Error ? error.message : String(error) })
  }
}

async function handle(request: EngineRequest): Promise<Bytes> {
  if ('open' in request) engine = await openEngine(request.open, (panic) => thread.postMessage({ panic }))
  else if ('execute' in request) return engine.execute(request.execute)
  else await engine.close()
  return new Uint8Array()
}
