// The engine itself: PGlite on durable files. It blocks its thread while it runs, so it has a separate one.
import { PGlite } from '@electric-sql/pglite'
import { engineFiles } from '../platform.ts'
import { DurableFS, prepareFiles } from './embedded_files.ts'
import { type Bytes, joinBytes } from './wire.ts'

/** One Postgres backend that takes wire-protocol messages and returns the bytes of its reply. */
export type Engine = {
  execute(messages: Bytes): Promise<Bytes>
  /** Writes everything out. A failed engine must not be closed, since what is in its memory may be wrong. */
  close(): Promise<void>
}

const settings = {
  // PGlite's fdatasync, its default method, does nothing; its fsync reaches the file system below it.
  wal_sync_method: 'fsync',
  shared_buffers: '32MB',
  max_wal_size: '64MB',
  // The memory of WebAssembly never shrinks, so one big index build would keep its memory until the restart.
  maintenance_work_mem: '16MB',
  autovacuum: 'off',
  TimeZone: 'UTC',
}

const startParams = [
  // The flag -F turns fsync off.
  ...PGlite.defaultStartParams.filter((parameter) => parameter !== '-F'),
  ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
]

// PGlite looks for initdb beside its own source file unless it is given one. initdb created the seed at build time,
// and an empty module makes sure that initdb never runs here.
const noInitdb = new WebAssembly.Module(new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]))

/** Opens the engine on its directory, which the first start creates from the seed. */
export async function openEngine(directory: string): Promise<Engine> {
  const [pgliteWasmModule] = await Promise.all([engineFiles.pgliteWasm(), prepareFiles(directory)])
  const engine = await start(directory, pgliteWasmModule)
  return {
    async execute(messages) {
      const chunks: Bytes[] = []
      // The bytes lie in the engine's own memory, which the next chunk overwrites, so they are copied.
      const onRawData = (bytes: Uint8Array) => chunks.push(new Uint8Array(bytes))
      await engine.execProtocolRawStream(messages, { onRawData, syncToFs: false })
      return chunks.length === 1 && chunks[0] ? chunks[0] : joinBytes(chunks)
    },
    close: () => engine.close(),
  }
}

async function start(directory: string, pgliteWasmModule: WebAssembly.Module): Promise<PGlite> {
  let lastFailure = ''
  const onStderr = (line: string): boolean => {
    if (/FATAL|PANIC/.test(line)) lastFailure = line
    return false
  }
  const files = { fs: new DurableFS(directory), fsBundle: engineFiles.fsBundle() }
  const programs = { pgliteWasmModule, initdbWasmModule: noInitdb }
  try {
    return await PGlite.create({ ...files, ...programs, startParams, onStderr })
  } catch (error) {
    // PGlite's own error says no more than that it did not start.
    throw new Error(`the embedded database in ${directory} did not start: ${lastFailure || error}`)
  }
}
