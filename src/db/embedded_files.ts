// The engine's files on disk: creates them from the seed, checks them, and makes writes durable.
import fs from 'node:fs'
import { dirname, join } from 'node:path'
import { NodeFS } from '@electric-sql/pglite/nodefs'
import { unpackSeed } from '../platform.ts'

const POSTGRES_MAJOR = '18'

type Node = { name: string }
type NodeFileSystem = {
  realPath(node: Node): string
  tryFSOperation<T>(operation: () => T): T
  node_ops: { rename(node: Node, newParent: Node, newName: string): void }
  stream_ops: { fsync?(stream: { nfd: number }): number }
}

/** PGlite's file system on real files, with an fsync that reaches the disk; in PGlite's own, fsync does nothing. */
export class DurableFS extends NodeFS {
  override async init(...[engine, options]: Parameters<NodeFS['init']>): ReturnType<NodeFS['init']> {
    const makeDurable = (mod: { FS: unknown }) => {
      const files = (mod.FS as { filesystems: { NODEFS: NodeFileSystem } }).filesystems.NODEFS
      files.stream_ops.fsync = ({ nfd }) => {
        files.tryFSOperation(() => fs.fsyncSync(nfd))
        return 0
      }
      // PGlite's own unlinks the target first, and a crash between the two would leave neither file.
      files.node_ops.rename = (node, newParent, newName) => {
        const target = join(files.realPath(newParent), newName)
        files.tryFSOperation(() => fs.renameSync(files.realPath(node), target))
        node.name = newName
      }
    }
    return super.init(engine, { ...options, preRun: [...[options.preRun ?? []].flat(), makeDurable] })
  }
}

/** Makes the engine's directory on the first start, and rejects one that this engine cannot read. */
export async function prepareFiles(directory: string): Promise<void> {
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
  await unpackSeed(fresh)
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
