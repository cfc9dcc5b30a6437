import { createReadStream, fstatSync, open } from 'node:fs'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'

export type Input = {
  stream: Readable
  /** In bytes; undefined for a pipe or a terminal. */
  size: number | undefined
}

/**
 * Opens a file to read, or standard input for "-". A stream by itself opens its file at the first read; by then this
 * process may have given up the rights of the operator who named the file.
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
