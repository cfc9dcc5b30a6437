// Postgres inside this process, for running without a database server. Same SQL and same driver as with one.
import type { Duplex } from 'node:stream'
import type { DatabaseObserver } from './client.ts'
import { DataDirInUse, filesOf, lockDataDir } from './data_dir.ts'
import { Backend, Session } from './embedded_session.ts'
import { startEngineThread } from './embedded_thread.ts'
import { type Housekeeping, openHousekeeping } from './housekeeping.ts'

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
  try {
    const engine = await startEngineThread(filesOf(dataDir))
    const backend = new Backend(engine.execute, (error) => observer.onFailure?.(error))
    engine.died.then((reason) => backend.fail(reason))
    const housekeeping = openHousekeeping(() => new Session(backend, 'housekeeping'), observer)
    return {
      ...housekeeping,
      connect: () => new Session(backend, 'client'),
      async close() {
        await housekeeping.close()
        await backend.endSessions()
        // A failed engine must not write: what is on the disk is right, what is in its memory may not be.
        if (backend.failed) engine.terminate()
        else await engine.close()
        lock.release()
      },
    }
  } catch (error) {
    lock.release()
    throw error
  }
}
