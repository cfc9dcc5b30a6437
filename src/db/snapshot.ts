import { constants, existsSync, mkdtempSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs'
import { cp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { type Db, openClient } from './client.ts'
import { backupOf, filesOf, type Lock, lockDataDir } from './data_dir.ts'
import { afterClose, asOwner, type Options, openAny, openDataDir } from './open.ts'

/** How many bytes are free on the disk that holds a folder. */
type FreeBytes = (folder: string) => number

/** What an engine may write as it starts and ends: a few segments of its log, 16 MiB each. */
const bytesToStart = 64 * 1024 * 1024

/**
 * Opens the configured database for reading all of it. When a server holds the data directory this is a copy of its
 * files, removed at the end: the engine has one backend, so reading everything through the server would block it for as
 * long, and copying blocks it only for a moment. It is a copy as well when the disk is too full for the engine to start
 * there, which is when a service has stopped for want of room.
 */
export async function openSnapshot(config: Config, options: Options, freeBytes: FreeBytes = freeOn): Promise<Db> {
  if (config.DATABASE_URL) return openAny(config, options)
  const dataDir = config.DATA_DIR
  return asOwner(dataDir, async () => {
    const stopped = await openStoppedOnFullDisk(dataDir, options, freeBytes)
    if (stopped) return stopped
    const { db, isShared } = await openDataDir(dataDir, options)
    return isShared ? openServed(db, dataDir, options, freeBytes).finally(db.close) : db
  })
}

/** Undefined when there is room to start the engine where it is, or none elsewhere, or a server has it. */
async function openStoppedOnFullDisk(dataDir: string, options: Options, freeBytes: FreeBytes): Promise<Db | undefined> {
  const files = filesOf(dataDir)
  if (!existsSync(files) || freeBytes(files) > bytesToStart || freeBytes(tmpdir()) < sizeOf(files)) return undefined
  const lock = lockDataDir(dataDir)
  if (!lock) return undefined
  const copyAll = (to: string) => cp(files, to, { recursive: true })
  return openCopy(createTemporaryFolder(), copyAll, lock, options)
}

async function openServed(shared: Db, dataDir: string, options: Options, freeBytes: FreeBytes): Promise<Db> {
  const { folder, copy: usual } = backupOf(dataDir)
  const lock = lockDataDir(folder)
  if (!lock) throw new Error(`Another backup of ${dataDir} is under way.`)
  const files = filesOf(dataDir)
  return openCopy(chooseCopyPlace(files, usual, freeBytes), (to) => copyFiles(shared, files, to), lock, options)
}

/** Opens an engine on the copy that the function given makes of the files, removed at the end. */
async function openCopy(
  copy: string,
  copyTo: (files: string) => Promise<void>,
  lock: Lock,
  options: Options,
): Promise<Db> {
  // A second signal ends the process without closing anything. The engine may then still be writing to the copy.
  const removeAtExit = () => rmSync(copy, { recursive: true, force: true, maxRetries: 10 })
  process.once('exit', removeAtExit)
  const remove = async () => {
    await rm(copy, { recursive: true, force: true })
    process.off('exit', removeAtExit)
    lock.release()
  }
  try {
    // A killed backup may have left its copy. The folder stays: a temporary one is new, and its owner's alone.
    await rm(filesOf(copy), { recursive: true, force: true })
    await copyTo(filesOf(copy))
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
function chooseCopyPlace(files: string, preferred: string, freeBytes: FreeBytes): string {
  const needed = sizeOf(files)
  if (freeBytes(files) > needed || freeBytes(tmpdir()) < needed) return preferred
  return createTemporaryFolder()
}

const createTemporaryFolder = () => mkdtempSync(join(tmpdir(), 'prompt-signals-backup-'))

function sizeOf(folder: string): number {
  const entries = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  return entries.reduce((sum, entry) => sum + (statSync(join(folder, entry), { throwIfNoEntry: false })?.size ?? 0), 0)
}

function freeOn(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}
