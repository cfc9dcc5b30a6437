// The data directory and who may use it.
import { lchownSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

export type Lock = { release(): void }

/** Thrown when another process works on the data directory. */
export class DataDirInUse extends Error {
  constructor(dir: string) {
    super(`the data directory ${dir} is in use by another process`)
    this.name = 'DataDirInUse'
  }
}

/**
 * Takes the data directory for this process, creating it if needed; undefined when another holds it.
 * SQLite is here for its kernel lock on the file: it holds across containers that share a volume, where a process
 * number means nothing, and it ends with its process however that ends.
 */
export function lockDataDir(dir: string): Lock | undefined {
  let file: DatabaseSync
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 })
    file = new DatabaseSync(join(dir, 'lock'))
  } catch (error) {
    throw unusable(dir, error)
  }
  try {
    // Nothing is ever written, so a journal file would only be left behind by a crash.
    file.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
  } catch (error) {
    file.close()
    if (isBusy(error)) return undefined
    throw unusable(dir, error)
  }
  return { release: () => file.close() }
}

/** Where the engine keeps its files. */
export const filesOf = (dir: string): string => join(dir, 'pgdata')

/** What root has made in a part of another user's directory goes to that user, who could not open it otherwise. */
export function giveToOwner(dir: string, part = dir): void {
  const { uid, gid } = statSync(dir)
  if (process.getuid?.() !== 0 || uid === 0) return
  for (const entry of ['', ...readdirSync(part, { recursive: true, encoding: 'utf8' })]) {
    lchownSync(join(part, entry), uid, gid)
  }
}

const SQLITE_BUSY = 5
const isBusy = (error: unknown): boolean =>
  error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY

function unusable(dir: string, error: unknown): Error {
  const reason = error instanceof Error ? error.message : String(error)
  return new Error(
    `the data directory ${dir} cannot be used: it must be a directory this user can write to (${reason})`,
    {
      cause: error,
    },
  )
}
