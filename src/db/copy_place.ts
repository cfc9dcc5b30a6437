import { mkdtempSync, readdirSync, statfsSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Chooses where a copy of a folder's files goes: to the preferred path, on the same disk, or, when that has no room, to a
 * new folder for temporary files, if there is room. A full disk can thereby still be backed up to elsewhere.
 */
export function chooseCopyPlace(files: string, preferred: string): string {
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
