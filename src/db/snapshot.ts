import { constants, mkdtempSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs'
import { cp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { type Db, openClient } from './client.ts'
import { backupOf, filesOf, lockDataDir } from './data_dir.ts'
import { afterClose, asOwner, type Options, openAny, openDataDir } from './open.ts'

/**
 * Opens the configured database for reading all of it. When a server holds the data directory this is a copy of its
 * files, removed at the end: the engine has one backend, so reading everything through the server would block it for as
 * long, and copying blocks it only for a moment.
 */
export async function openSnapshot(config: Config, options: Options): Promise<Db> {
  if (config.DATABASE_URL) return openAny(config, options)
  return asOwner(config.DATA_DIR, async () => {
    const { db, isShared } = await openDataDir(config.DATA_DIR, options)
    return isShared ? openCopy(db, config.DATA_DIR, options).finally(db.close) : db
  })
}

async function openCopy(shared: Db, dataDir: string, options: Options): Promise<Db> {
  const { folder, copy: usual } = backupOf(dataDir)
  const lock = lockDataDir(folder)
  if (!lock) throw new Error(`Another backup of ${dataDir} is under way.`)
  const copy = chooseCopyPlace(filesOf(dataDir), usual)
  // A second signal ends the process without closing anything. The engine may then still be writing to the copy.
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
  // The connection is closed immediately, because a server that stops waits for the processes it shares with.
  await db.close()
}

/**
 * Chooses where a copy of a folder's files goes: to the preferred path, on the same disk, or, when that has no room, to a
 * new folder for temporary files, if there is room. A full disk can thereby still be backed up to elsewhere.
 */
function chooseCopyPlace(files: string, preferred: string): string {
  const needed = sizeOf(files)
  if (freeOn(files) > needed || freeOn(tmpdir()) < needed) return preferred
  return mkdtempSync(join(tmpdir(), 'prompt-signals-backup-'))
}

function sizeOf(folder: string): number {
  const entries = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  return entries.reduce((sum, entry) => sum + (statSync(join(folder, entry), { throwIfNoEntry: false })?.size ?? 0), 0)
}

function freeOn(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}
