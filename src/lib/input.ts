import { createReadStream, fstatSync, open } from 'node:fs'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'

export type Input = {
  stream: Readable
  /** The number of bytes in a file; undefined for a pipe or a terminal, whose end is not known. */
  size: number | undefined
}

/**
 * Opens a file to read, or standard input for "-". A stream would open its file only at the first read, so a wrong name
 * would be reported only after the database was created.
 */
export async function openInput(path: string): Promise<Input> {
  if (path === '-') return { stream: process.stdin, size: undefined }
  const fd = await promisify(open)(path, 'r').catch((error) => {
    throw new Error(`${path} cannot be read: ${error.message}`)
  })
  const found = fstatSync(fd)
  if (found.isDirectory()) throw new Error(`${path} cannot be read: it is a directory`)
  return { stream: createReadStream(path, { fd }), size: found.isFile() ? found.size : undefined }
}
