// The data directory and who may use it.
import { existsSync, lstatSync, mkdirSync, statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

export type Lock = { release(): void }

/** Thrown when another process works on the data directory. */
export class DataDirInUse extends Error {
  constructor(dir: string) {
    super(`the data directory ${dir} is in use by another process`)
  }
}

/**
 * Locks the data directory for this process, creating it if needed; undefined when another process holds it.
 * SQLite is used for its kernel lock on the file: it holds across containers that share a volume, where a process
 * number means nothing, and it ends with its process however that ends.
 */
export function lockDataDir(dir: string): Lock | undefined {
  let file: DatabaseSync | undefined
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 })
    file = new DatabaseSync(join(dir, 'lock'))
    // Nothing is ever written, so a journal file would only be left behind by a crash.
    file.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
  } catch (error) {
    file?.close()
    if (isBusy(error)) return undefined
    throw unusable(dir, error)
  }
  return { release: () => file.close() }
}

/** Where the engine keeps its files. */
export const filesOf = (dir: string): string => join(dir, 'pgdata')

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

/**
 * Gives this process, when it is root's, the rights of the owner of the data directory instead: with root's rights it
 * would follow whatever links that owner has put there. A directory that does not exist yet will belong to the owner of
 * the one it is made in. Returns what gives root's rights back, since files that root has named are root's to write.
 */
export function becomeOwner(dir: string): () => void {
  if (process.geteuid?.() !== 0) return () => {}
  const owner = findOwner(resolve(dir))
  if (!owner) return () => {}
  const { setgroups, setegid, seteuid } = process
  if (!setgroups || !setegid || !seteuid) {
    throw unusable(dir, new Error(`it belongs to user ${owner.uid}: run this as that user`))
  }
  const [group, groups] = [process.getegid?.() ?? 0, process.getgroups?.() ?? []]
  setgroups([owner.gid])
  setegid(owner.gid)
  seteuid(owner.uid)
  return () => {
    seteuid(0)
    setegid(group)
    setgroups(groups)
  }
}

/** The owner of the directory, unless that is root: of the link that leads to it, or of where it leads to. */
function findOwner(path: string): { uid: number; gid: number } | undefined {
  const found = [lstatSync, statSync].flatMap((read) => {
    try {
      return read(path)
    } catch {
      return []
    }
  })
  if (found.length === 0 && path !== dirname(path)) return findOwner(dirname(path))
  return found.find(({ uid }) => uid !== 0)
}

const SQLITE_BUSY = 5
const isBusy = (error: unknown): boolean =>
  error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY

function unusable(dir: string, error: unknown): Error {
  const reason = error instanceof Error ? error.message : String(error)
  return new Error(
    `the data directory ${dir} cannot be used: it must be a directory that this user can write to (${reason})`,
    { cause: error },
  )
}
