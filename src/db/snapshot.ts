import { constants, rmSync } from 'node:fs'
import { cp, readdir, readFile, rm, stat, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Config } from '../config.ts'
import type { Db } from './client.ts'
import { backupOf, filesOf, lockDataDir } from './data_dir.ts'
import { type Options, openAny, openDataDir, openEngineClient } from './open.ts'

const wholeFolder = { recursive: true, mode: constants.COPYFILE_FICLONE }
/** What a copy must leave free, beside a tenth of its size: the server goes on writing, and fails on a full disk. */
const reservedBytes = 256 * 1024 ** 2

/**
 * Opens the configured database to read all of it. If a server holds the data directory, this is a copy of its files:
 * reading everything through the one backend would block it for as long.
 */
export async function openSnapshot(config: Config, options: Options): Promise<Db> {
  if (config.DATABASE_URL) return openAny(config, options)
  const { db, isShared } = await openDataDir(config.DATA_DIR, options)
  return isShared ? openCopy(db, config.DATA_DIR, options).finally(db.close) : db
}

/** Opens an engine on a copy of the server's files. Closing it removes the copy. */
async function openCopy(shared: Db, dataDir: string, options: Options): Promise<Db> {
  const { folder, copy } = backupOf(dataDir)
  const lock = lockDataDir(folder)
  if (!lock) throw new Error(`Another backup of ${dataDir} is running.`)
  // An interrupted command that takes too long to close, or gets a second signal, ends without closing anything. The
  // engine may then still be writing to the copy.
  const removeAtExit = () => rmSync(copy, { recursive: true, force: true, maxRetries: 10 })
  process.once('exit', removeAtExit)
  const remove = async () => {
    await rm(copy, { recursive: true, force: true })
    process.off('exit', removeAtExit)
    lock.release()
  }
  try {
    // A killed backup may have left its copy.
    await rm(copy, { recursive: true, force: true })
    await copyFiles(shared, filesOf(dataDir), filesOf(copy))
    const { openEmbedded } = await import('./embedded.ts')
    const engine = await openEmbedded(copy, options.observer)
    const db = openEngineClient(engine, options)
    return { ...db, close: () => db.close().finally(remove) }
  } catch (error) {
    await remove()
    throw error
  }
}

/** Copies the files. The engine recovers from the copy as from a crash. */
async function copyFiles(db: Db, from: string, to: string): Promise<void> {
  await requireRoom(from, dirname(dirname(to)))
  // Right after one checkpoint, the next is almost a minute away.
  const isWhole = (await copyWhileWritten(from, to)) || (await copyWhileWritten(from, to))
  if (!isWhole) await copyWhileHeld(db, from, to)
  // The connection is closed immediately, because a server that stops waits for the processes it shares with.
  await db.close()
}

async function requireRoom(files: string, folder: string): Promise<void> {
  let bytes = 0
  for (const name of await readdir(files, { recursive: true })) {
    const file = await stat(join(files, name)).catch(() => undefined)
    bytes += file?.size ?? 0
  }
  const needed = bytes * 1.1 + reservedBytes
  const { bavail, bsize } = await statfs(folder)
  if (bavail * bsize >= needed) return
  throw new Error(`The disk of ${folder} has no room for a copy: ${Math.ceil(needed / 1024 ** 2)} MB must be free.`)
}

/**
 * Copies while the server writes. Replaying the log from the last checkpoint mends pages that were written meanwhile, so
 * the log is copied last. False when a checkpoint came meanwhile, since it removes log that the copy needs.
 */
export async function copyWhileWritten(from: string, to: string): Promise<boolean> {
  const readCheckpoint = () => readFile(join(from, 'global/pg_control'))
  const log = join(from, 'pg_wal')
  await rm(to, { recursive: true, force: true })
  try {
    const before = await readCheckpoint()
    await cp(from, to, { ...wholeFolder, filter: (path) => path !== log })
    await cp(log, join(to, 'pg_wal'), wholeFolder)
    return before.equals(await readCheckpoint())
  } catch (error) {
    // Postgres removed a file, such as a temporary one, before it was copied.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}

/** Copies while an open transaction keeps the backend, so that nothing is written. If the server stops, the commit fails. */
async function copyWhileHeld(db: Db, from: string, to: string): Promise<void> {
  await rm(to, { recursive: true, force: true })
  await db.transaction(async (sql) => {
    await sql`select 1`
    try {
      await cp(from, to, wholeFolder)
    } catch (error) {
      // The disk may be full: the server must not write before there is room again.
      await rm(to, { recursive: true, force: true })
      throw error
    }
  })
}
