import { constants, rmSync } from 'node:fs'
import { cp, rm } from 'node:fs/promises'
import type { Config } from '../config.ts'
import type { Db } from './client.ts'
import { backupOf, filesOf, lockDataDir } from './data_dir.ts'
import { type Options, openAny, openDataDir, openEngineClient } from './open.ts'

/**
 * Opens the configured database to read all of it. If a server holds the data directory, this is a copy of its files:
 * copying blocks the one backend only briefly, reading everything through it would block it for as long.
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

/**
 * Copies the files while an open transaction keeps the backend, so that nothing writes to them. The engine recovers
 * from the copy as from a crash. If the server stops meanwhile, the commit fails.
 */
async function copyFiles(db: Db, from: string, to: string): Promise<void> {
  await db.transaction(async (sql) => {
    await sql`select 1`
    try {
      await cp(from, to, { recursive: true, mode: constants.COPYFILE_FICLONE })
    } catch (error) {
      // The disk may be full: the server must not write before there is room again.
      await rm(to, { recursive: true, force: true })
      throw error
    }
  })
  // The connection is closed immediately, because a server that stops waits for the processes it shares with.
  await db.close()
}
