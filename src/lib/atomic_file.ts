import { constants } from 'node:fs'
import { access, open, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { randomBase62 } from './base62.ts'

/** Writes a temporary file and renames it once it is synced, so a file with the given name is always complete. */
export async function writeFileAtomically<T>(
  path: string,
  fill: (put: (chunk: Uint8Array | string) => Promise<void>) => Promise<T>,
  mode = 0o600,
): Promise<T> {
  await requireFileName(path)
  // Random, because several processes may write to this path concurrently.
  const unfinished = `${path}.${randomBase62(6)}.unfinished`
  const onFailure = (error: Error) => {
    throw cannotWrite(path, error.message)
  }
  const file = await open(unfinished, 'w', mode).catch(onFailure)
  try {
    const result = await fill((chunk) => file.writeFile(chunk).catch(onFailure))
    await file.sync().catch(onFailure)
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

/** Rejects a path that cannot be replaced by a file: an empty one, a device, a folder, or one in a folder that is not writable. */
export async function requireFileName(path: string): Promise<void> {
  if (/^$|\/$/.test(path)) throw new Error(`"${path}" is not the name of a file`)
  const existing = await stat(path).catch(() => undefined)
  if (existing && !existing.isFile()) throw cannotWrite(path, 'it exists and is not a file')
  await access(dirname(path), constants.W_OK).catch((error) => {
    throw cannotWrite(path, error.message)
  })
}

const cannotWrite = (path: string, reason: string) => new Error(`${path} cannot be written: ${reason}`)

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
