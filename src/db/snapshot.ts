import { constants, rmSync } from 'node:fs'
import { cp, rm } from 'node:fs/promises'
import { constants as system } from 'node:os'
import type { Config } from '../config.ts'
import { type Db, openClient } from './client.ts'
import { chooseCopyPlace } from './copy_place.ts'
import { backupOf, becomeOwner, filesOf, lockDataDir } from './data_dir.ts'
import { afterClose, type Options, openAny } from './open.ts'

/**
 * The configured database, for reading all of it. When a server holds the data directory this is a copy of its files,
 * removed at the end: the engine has one backend, so reading everything through the server would stop it for as long,
 * and copying stops it only for a moment.
 */
export async function openSnapshot(config: Config, options: Options): Promise<Db> {
  if (config.DATABASE_URL) return (await openAny(config, options)).db
  const regainRights = becomeOwner(config.DATA_DIR)
  try {
    const { db, isShared } = await openAny(config, options)
    if (!isShared) return afterClose(db, regainRights)
    return afterClose(await openCopy(db, config.DATA_DIR, options).finally(db.close), regainRights)
  } catch (error) {
    regainRights()
    throw error
  }
}

async function openCopy(shared: Db, dataDir: string, options: Options): Promise<Db> {
  const { folder, copy: preferred } = backupOf(dataDir)
  const lock = lockDataDir(folder)
  if (!lock) throw new Error(`Another backup of ${dataDir} is under way.`)
  const copy = chooseCopyPlace(filesOf(dataDir), preferred)
  const keep = removeAtExit(copy)
  const remove = async () => {
    await rm(copy, { recursive: true, force: true })
    keep()
    lock.release()
  }
  try {
    // A killed backup may have left its copy.
    await rm(copy, { recursive: true, force: true })
    await copyFiles(shared, filesOf(dataDir), filesOf(copy))
    const { openEmbedded } = await import('./embedded.ts')
    const engine = await openEmbedded(copy, options.observer)
    const db = openClient({ socket: engine.connect }, { ...options, maxConnections: 1 })
    return afterClose(afterClose(db, engine.close), remove)
  } catch (error) {
    await remove()
    throw error
  }
}

/**
 * Copies the engine's files while an open transaction keeps the backend, so that nothing else writes to them. They are
 * then as a crash at this moment would leave them: whole, together with their log. If the server stops meanwhile, the
 * commit fails.
 */
async function copyFiles(db: Db, from: string, to: string): Promise<void> {
  await db.transaction(async (sql) => {
    await sql`select 1`
    await cp(from, to, { recursive: true, mode: constants.COPYFILE_FICLONE })
  })
  // The connection is closed at once, because a server that stops waits for its guests.
  await db.close()
}

/** Removes the copy also when a signal ends the process. Returns what undoes this. */
function removeAtExit(copy: string): () => void {
  // The engine may still be writing to it.
  const remove = () => rmSync(copy, { recursive: true, force: true, maxRetries: 10 })
  const end = (signal: 'SIGINT' | 'SIGTERM') => process.exit(128 + system.signals[signal])
  // A command that handles signals itself ends by its own way, and so with this process.
  const signals = (['SIGINT', 'SIGTERM'] as const).filter((signal) => process.listenerCount(signal) === 0)
  process.once('exit', remove)
  for (const signal of signals) process.once(signal, end)
  return () => {
    process.off('exit', remove)
    for (const signal of signals) process.off(signal, end)
  }
}
