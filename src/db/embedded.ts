// Postgres inside this process, for running without a database server. Same SQL and same driver as with one.
import type { Duplex } from 'node:stream'
import { startEngineWorker } from '../platform.ts'
import type { DatabaseObserver } from './client.ts'
import { DataDirInUse, filesOf, hasFiles, lockDataDir } from './data_dir.ts'
import { Backend, Session } from './embedded_session.ts'
import type { EngineReply, EngineRequest } from './embedded_worker.ts'
import { type Housekeeping, openHousekeeping } from './housekeeping.ts'
import type { Bytes } from './wire.ts'

export type Embedded = Housekeeping & {
  /** Opens a wire-protocol connection to the engine inside this process, for the driver's `socket` option. */
  connect(): Duplex
  /** Ends every connection, writes everything out and unlocks the data directory. */
  close(): Promise<void>
}

/** Opens the engine on a data directory, which the first start creates. Throws DataDirInUse when it is locked. */
export async function openEmbedded(dataDir: string, observer: DatabaseObserver = {}): Promise<Embedded> {
  const lock = lockDataDir(dataDir)
  if (!lock) throw new DataDirInUse(dataDir)
  if (!hasFiles(dataDir)) observer.onCreating?.(dataDir)
  try {
    const engine = await startEngineThread(filesOf(dataDir))
    let isClosing = false
    // What still comes while it closes is rejected; that is no failure of the engine.
    const backend = new Backend(engine.execute, (error) => isClosing || observer.onFailure?.(error))
    engine.died.then((reason) => backend.fail(reason))
    const housekeeping = openHousekeeping(() => new Session(backend), observer)
    return {
      ...housekeeping,
      connect: () => new Session(backend),
      async close() {
        await housekeeping.close()
        await backend.endSessions()
        // A failed engine must not write: what is on the disk is right, what is in its memory may not be.
        if (backend.failed) engine.terminate()
        else {
          isClosing = true
          await engine.close()
        }
        lock.release()
      },
    }
  } catch (error) {
    lock.release()
    throw error
  }
}

/** Opens the engine in a separate thread, so that deadlines, health checks and metrics keep working while it is busy. */
export async function startEngineThread(directory: string, worker = startEngineWorker()) {
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
    // It comes while the engine is still busy, perhaps forever, with a request.
    if ('panic' in data) return end(data.panic, false)
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
    execute: (messages: Bytes) => send({ execute: messages }, [messages.buffer]),
    async close() {
      await send({ close: true })
      end('it was closed', true)
    },
    /** Resolves with the reason when the thread ends unexpectedly. */
    died: died.promise,
    /** Ends the thread immediately, without writing anything out. */
    terminate: () => end('it was terminated', true),
  }
}
