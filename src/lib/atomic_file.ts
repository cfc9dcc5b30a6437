import { open, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { randomBase62 } from './base62.ts'

/**
 * Writes a file under another name, and renames it once it is complete and on the disk, so that a file of the given name
 * is always whole. Only its owner may read it.
 */
export async function writeFileAtomically<T>(
  path: string,
  fill: (put: (chunk: Uint8Array | string) => Promise<void>) => Promise<T>,
): Promise<T> {
  const cannot = (reason: string) => new Error(`${path} cannot be written: ${reason}`)
  const existing = await stat(path).catch(() => undefined)
  // A device would be replaced by a file of its name.
  if (existing && !existing.isFile()) throw cannot('there is something else of this name')
  // The name is random because several may be written to this path concurrently.
  const unfinished = `${path}.${randomBase62(6)}.unfinished`
  const file = await open(unfinished, 'w', 0o600).catch((error) => {
    throw cannot(error.message)
  })
  try {
    const result = await fill((chunk) => file.writeFile(chunk))
    await file.sync()
    await file.close()
    await rename(unfinished, path)
    await syncFolder(dirname(path))
    return result
  } catch (error) {
    await file.close().catch(() => {})
    await rm(unfinished, { force: true })
    throw error
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
