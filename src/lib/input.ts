import { createReadStream, fstatSync, open } from 'node:fs'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'

export type Input = {
  stream: Readable
  /** In bytes; undefined for a pipe or a terminal. */
  size: number | undefined
}

/** Opens a file, or standard input for "-", immediately: a missing file must be reported before any work starts. */
export async function openInput(path: string): Promise<Input> {
  if (path === '-') return { stream: process.stdin, size: undefined }
  const fd = await promisify(open)(path, 'r').catch((error) => {
    throw new Error(`${path} cannot be read: ${error.message}`)
  })
  const found = fstatSync(fd)
  if (found.isDirectory()) throw new Error(`${path} cannot be read: it is a directory`)
  return { stream: createReadStream(path, { fd }), size: found.isFile() ? found.size : undefined }
}
