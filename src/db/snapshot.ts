import { constants } from 'node:fs'
import { cp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { type Db, openClient } from './client.ts'
import { chooseCopyPlace } from './copy_place.ts'
import { filesOf, giveToOwner, type Lock, lockDataDir } from './data_dir.ts'
import { type Options, openAny } from './open.ts'

/**
 * The configured database, for reading all of it. When a server holds the data directory this is a copy of its files,
 * removed at the end: the engine has one backend, so reading everything through the server would stop it for as long,
 * and copying stops it only for a moment.
 */
export async function openSnapshot(config: Config, options: Options): Promise<Db> {
  const { db, isShared } = await openAny(config, options)
  if (!isShared) return db
  const folder = join(config.DATA_DIR, 'backup')
  const copy = chooseCopyPlace(filesOf(config.DATA_DIR), join(folder, 'copy'))
  let lock: Lock | undefined
  try {
    lock = lockDataDir(folder)
    if (!lock) throw new Error(`Another backup of ${config.DATA_DIR} is under way.`)
    giveToOwner(config.DATA_DIR, folder)
    // What a killed backup has left.
    await rm(copy, { recursive: true, force: true })
    await copyFiles(db, filesOf(config.DATA_DIR), filesOf(copy))
    return await openCopy(copy, options, lock)
  } catch (error) {
    await db.close()
    if (lock) await rm(copy, { recursive: true, force: true })
    lock?.release()
    throw error
  }
}

/**
 * An open transaction keeps the backend to itself, and nothing else writes to the files. They are then as a crash at
 * this moment would leave them: whole, together with their log. If the server goes meanwhile, the commit fails.
 */
async function copyFiles(db: Db, from: string, to: string): Promise<void> {
  await db.transaction(async (sql) => {
    await sql`select 1`
    await cp(from, to, { recursive: true, mode: constants.COPYFILE_FICLONE })
  })
  // At once: a server that is told to stop waits for its guests.
  await db.close()
}

async function openCopy(dir: string, options: Options, lock: Lock): Promise<Db> {
  const { openEmbedded } = await import('./embedded.ts')
  const engine = await openEmbedded(dir, options.observer)
  const db = openClient({ socket: engine.connect }, { ...options, maxConnections: 1 })
  return {
    ...db,
    async close() {
      await db.close()
      await engine.close()
      await rm(dir, { recursive: true, force: true })
      lock.release()
    },
  }
}
