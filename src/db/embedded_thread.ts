// The engine's thread as the main thread sees it. The engine blocks only that thread, so deadlines, health checks and
// metrics keep working.
import { startEngineWorker } from '../platform.ts'
import type { Engine } from './embedded_engine.ts'
import type { EngineReply, EngineRequest } from './embedded_worker.ts'
import type { Bytes } from './wire.ts'

type EngineThread = Engine & {
  /** Resolves with the reason when the thread ends unexpectedly. */
  died: Promise<string>
  /** Ends the thread immediately, without writing anything out. */
  terminate(): void
}

/** Opens the engine in a separate thread. */
export async function startEngineThread(directory: string, worker = startEngineWorker()): Promise<EngineThread> {
  const pending: PromiseWithResolvers<Bytes>[] = []
  const died = Promise.withResolvers<string>()
  let endedBy: string | undefined

  function end(reason: string, isOnPurpose: boolean): void {
    if (endedBy !== undefined) return
    endedBy = reason
    worker.terminate()
    for (const { reject } of pending.splice(0)) reject(new Error(reason))
    if (!isOnPurpose) died.resolve(reason)
  }

  function send(request: EngineRequest, transfer: ArrayBuffer[] = []): Promise<Bytes> {
    if (endedBy !== undefined) return Promise.reject(new Error(endedBy))
    const reply = Promise.withResolvers<Bytes>()
    pending.push(reply)
    worker.postMessage(request, transfer)
    return reply.promise
  }

  worker.onmessage = ({ data }: { data: EngineReply }) => {
    const reply = pending.shift()
    if ('error' in data) reply?.reject(new Error(data.error))
    else reply?.resolve(data.bytes)
  }
  worker.onerror = (event) => end(event.message, false)
  worker.addEventListener('close', () => end('its thread has ended', false))

  try {
    await send({ open: directory })
  } catch (error) {
    end('it did not start', true)
    throw error
  }
  return {
    execute: (messages) => send({ execute: messages }, [messages.buffer]),
    async close() {
      await send({ close: true })
      end('it was closed', true)
    },
    died: died.promise,
    terminate: () => end('it was terminated', true),
  }
}
