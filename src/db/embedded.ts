// Postgres inside this process, for running without a database server. Same SQL and same driver as with one.
import type { Duplex } from 'node:stream'
import { PGlite } from '@electric-sql/pglite'
import { engineFiles } from '../platform.ts'
import type { DatabaseObserver } from './client.ts'
import { DataDirInUse, filesOf, lockDataDir } from './data_dir.ts'
import { DurableFS, prepareFiles } from './embedded_files.ts'
import { Backend, Session } from './embedded_session.ts'
import { openHousekeeping } from './housekeeping.ts'

export type Embedded = {
  /** For the driver's `socket` option: a wire-protocol connection to the engine inside this process. */
  connect(): Duplex
  checkpoint(): Promise<void>
  vacuum(): Promise<void>
  /** What the timer does: vacuum and analyse the tables that need it, and checkpoint when enough was written. */
  maintain(): Promise<void>
  /** Ends every connection, writes everything out and gives the data directory free. */
  close(): Promise<void>
}

const settings = {
  // The engine's fdatasync, its default here, does nothing; its fsync goes to the file system below it.
  wal_sync_method: 'fsync',
  shared_buffers: '32MB',
  max_wal_size: '64MB',
  // The memory of WebAssembly never shrinks, so one big index build would be paid for until the restart.
  maintenance_work_mem: '16MB',
  autovacuum: 'off',
  TimeZone: 'UTC',
}

const startParams = [
  // -F turns fsync off.
  ...PGlite.defaultStartParams.filter((parameter) => parameter !== '-F'),
  ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
]

// Initdb has run when the seed was made. It must be given, or the engine looks for it beside its own source file;
// an empty one makes sure that it never quietly runs here.
const noInitdb = new WebAssembly.Module(new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]))

/** Opens the engine on a data directory, making it on the first start. Throws DataDirInUse when another process has it. */
export async function openEmbedded(dataDir: string, observer: DatabaseObserver = {}): Promise<Embedded> {
  const lock = lockDataDir(dataDir)
  if (!lock) throw new DataDirInUse(dataDir)
  try {
    const directory = filesOf(dataDir)
    const [pgliteWasmModule] = await Promise.all([engineFiles.pgliteWasm(), prepareFiles(directory)])
    return serve(await start(directory, pgliteWasmModule), lock.release, observer)
  } catch (error) {
    lock.release()
    throw error
  }
}

async function start(directory: string, pgliteWasmModule: WebAssembly.Module): Promise<PGlite> {
  let lastWords = ''
  const onStderr = (line: string): boolean => {
    if (/FATAL|PANIC/.test(line)) lastWords = line
    return false
  }
  const files = { fs: new DurableFS(directory), fsBundle: engineFiles.fsBundle() }
  const programs = { pgliteWasmModule, initdbWasmModule: noInitdb }
  try {
    return await PGlite.create({ ...files, ...programs, startParams, onStderr })
  } catch (error) {
    // The engine's own error says no more than that it did not start.
    throw new Error(`the embedded database in ${directory} did not start: ${lastWords || error}`)
  }
}

function serve(engine: PGlite, release: () => void, observer: DatabaseObserver): Embedded {
  const backend = new Backend(
    (messages) => execute(engine, messages),
    (error) => observer.onFailure?.(error),
  )
  const housekeeping = openHousekeeping(() => new Session(backend, 'housekeeping'), observer)
  return {
    connect: () => new Session(backend, 'client'),
    checkpoint: housekeeping.checkpoint,
    vacuum: housekeeping.vacuum,
    maintain: housekeeping.maintain,
    async close() {
      await housekeeping.close()
      const sessions = [...backend.sessions].map((session) => session.destroy())
      await Promise.all(sessions.map((session) => session.cleaned))
      // A failed engine must not write: what is on the disk is right, what is in its memory may not be.
      if (!backend.failed) await engine.close()
      release()
    },
  }
}

async function execute(engine: PGlite, messages: Buffer): Promise<Buffer> {
  const chunks: Buffer[] = []
  // The bytes lie in the engine's own memory, which the next call overwrites: hence the copy.
  const onRawData = (bytes: Uint8Array) => chunks.push(Buffer.from(bytes))
  await engine.execProtocolRawStream(messages, { onRawData, syncToFs: false })
  return Buffer.concat(chunks)
}
