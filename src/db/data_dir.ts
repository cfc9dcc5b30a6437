import { existsSync, lstatSync, mkdirSync, statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

const SQLITE_BUSY = 5

export class DataDirInUse extends Error {
  constructor(dir: string) {
    super(`the data directory ${dir} is in use by another process`)
  }
}

/**
 * Locks the data directory, creating it if needed; undefined when another process holds it. The lock is the kernel's:
 * it holds across containers that share a volume, and ends with its process.
 */
export function lockDataDir(dir: string): { release(): void } | undefined {
  let file: DatabaseSync | undefined
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 })
    file = new DatabaseSync(join(dir, 'lock'))
    // Nothing is ever written, so a journal file would only be left behind by a crash.
    file.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
  } catch (error) {
    file?.close()
    if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY) return undefined
    const reason = error instanceof Error ? error.message : String(error)
    throw new Error(
      `The data directory ${dir} cannot be used: it must be a directory that this user can write to (${reason})`,
      { cause: error },
    )
  }
  return { release: () => file.close() }
}

/** Where the engine keeps its files. */
export const filesOf = (dir: string): string => join(dir, 'pgdata')

/** True also for a directory that this user may not enter: the lock then says so. */
export function hasFiles(dir: string): boolean {
  try {
    return statSync(filesOf(dir), { throwIfNoEntry: false }) !== undefined
  } catch {
    return true
  }
}

/** Where a backup beside a running server keeps its copy of the engine's files. */
export const backupOf = (dir: string) => ({ folder: join(dir, 'backup'), copy: join(dir, 'backup', 'copy') })

/** Removes the copy that a killed backup has left, unless another backup is using it. */
export async function removeAbandonedCopy(dir: string): Promise<void> {
  const { folder, copy } = backupOf(dir)
  if (!existsSync(copy)) return
  const lock = lockDataDir(folder)
  if (!lock) return
  await rm(copy, { recursive: true, force: true })
  lock.release()
}

/** Rejects root in another user's directory: that user could not open root's files, and root would follow its links. */
export function rejectForeignDataDir(dir: string): void {
  if (process.geteuid?.() !== 0 || !existsSync(dir)) return
  const owner = [lstatSync(dir), statSync(dir)].find(({ uid }) => uid !== 0)?.uid
  if (owner === undefined) return
  throw new Error(
    `The data directory ${dir} belongs to user ${owner}: run the command as that user, sudo -u '#${owner}' …`,
  )
}
