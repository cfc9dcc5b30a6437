// The engine itself: PGlite on durable files. It blocks its thread while it runs, so it has a separate one.
import fs from 'node:fs'
import { dirname, join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import { NodeFS } from '@electric-sql/pglite/nodefs'
import { engineFiles, unpackSeed } from '../platform.ts'
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

/**
 * Opens the engine on its directory, which the first start creates from the seed. Calls `onPanic` with the reason when the
 * engine must not be used any more: PGlite goes on after a PANIC, and if that was in a commit, it never returns.
 */
export async function openEngine(directory: string, onPanic: (line: string) => void = () => {}): Promise<Engine> {
  const [pgliteWasmModule] = await Promise.all([engineFiles.pgliteWasm(), prepareFiles(directory)])
  const engine = await start(directory, pgliteWasmModule, onPanic)
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

async function start(
  directory: string,
  pgliteWasmModule: WebAssembly.Module,
  onPanic: (line: string) => void,
): Promise<PGlite> {
  let lastFailure = ''
  let isStarted = false
  const describeFailure = (reason: unknown) => `the embedded database in ${directory} did not start: ${reason}`
  const onStderr = (line: string): boolean => {
    if (/FATAL|PANIC/.test(line)) lastFailure = line
    if (line.includes('PANIC:')) onPanic(isStarted ? line : describeFailure(line))
    return false
  }
  const files = { fs: new DurableFS(directory), fsBundle: engineFiles.fsBundle() }
  const programs = { pgliteWasmModule, initdbWasmModule: noInitdb }
  try {
    const engine = await PGlite.create({ ...files, ...programs, startParams, onStderr })
    isStarted = true
    return engine
  } catch (error) {
    // PGlite's own error says no more than that it did not start.
    throw new Error(describeFailure(lastFailure || error))
  }
}

const POSTGRES_MAJOR = '18'

type Node = object
type Stream = { node: Node; path: string; nfd: number }
type NodeFileSystem = {
  tryFSOperation<T>(operation: () => T): T
  node_ops: {
    mknod(parent: Node, name: string, mode: number, device: number): Node
  }
  stream_ops: { open(stream: Stream): void; fsync?(stream: Stream): number }
}
type EngineModule = { NODEFS: NodeFileSystem; FS: { unlink(path: string): void } }

/** PGlite's file system on real files, with an fsync that reaches the disk; in PGlite's own, fsync does nothing. */
class DurableFS extends NodeFS {
  override async init(...[engine, options]: Parameters<NodeFS['init']>): ReturnType<NodeFS['init']> {
    const makeDurable = (mod: object) => {
      const { NODEFS: files, FS } = mod as EngineModule
      files.stream_ops.fsync = ({ nfd }) => {
        files.tryFSOperation(() => fs.fsyncSync(nfd))
        return 0
      }
      // PGlite creates a file before it opens it. Where no descriptor is free, Postgres closes one and creates the file again.
      const [{ mknod }, { open }] = [files.node_ops, files.stream_ops]
      let created: Node | undefined
      files.node_ops.mknod = (...file) => {
        created = mknod(...file)
        return created
      }
      files.stream_ops.open = (stream) => {
        const isNew = stream.node === created
        created = undefined
        try {
          open(stream)
        } catch (error) {
          if (isNew) FS.unlink(stream.path)
          throw error
        }
      }
    }
    return super.init(engine, { ...options, preRun: [...[options.preRun ?? []].flat(), makeDurable] })
  }
}

/** Makes the engine's directory on the first start, and rejects one that this engine cannot read. */
async function prepareFiles(directory: string): Promise<void> {
  if (!fs.existsSync(directory)) await createFiles(directory)
  const path = join(directory, 'PG_VERSION')
  if (!fs.existsSync(path)) throw new Error(`${directory} is not a Postgres data directory: it has no PG_VERSION`)
  const found = fs.readFileSync(path, 'utf8').trim()
  if (found !== POSTGRES_MAJOR) {
    throw new Error(
      `${directory} was written by PostgreSQL ${found}, and this program holds PostgreSQL ${POSTGRES_MAJOR}: ` +
        'back it up with the program that wrote it and restore that here',
    )
  }
  // Whoever holds the data directory is alone with it. A kill during the start can leave this file empty, and Postgres
  // would then never start again.
  fs.rmSync(join(directory, 'postmaster.pid'), { force: true })
}

async function createFiles(directory: string): Promise<void> {
  const fresh = `${directory}.new`
  fs.rmSync(fresh, { recursive: true, force: true })
  fs.mkdirSync(fresh, { mode: 0o700 })
  await unpackSeed(fresh).catch((error) => {
    throw new Error(`${directory} cannot be created: is the disk full? (${error.message})`)
  })
  // The directory gets its name once it is whole and on the disk, so that a crash here leaves nothing that looks ready.
  for (const entry of fs.readdirSync(fresh, { recursive: true, encoding: 'utf8' })) syncPath(join(fresh, entry))
  syncPath(fresh)
  fs.renameSync(fresh, directory)
  syncPath(dirname(directory))
}

function syncPath(path: string): void {
  const file = fs.openSync(path, 'r')
  try {
    fs.fsyncSync(file)
  } finally {
    fs.closeSync(file)
  }
}
