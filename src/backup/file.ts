import { once } from 'node:events'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { writeFileAtomically } from '../lib/atomic_file.ts'
import { type Input, readLines, TextError } from '../lib/input.ts'
import { damaged, notOurs } from './format.ts'

type Fill = (write: (text: string) => Promise<void>) => Promise<unknown>

type ReadOptions = {
  signal?: AbortSignal
  /** Called with the share of the file that has been read; never for a pipe, whose length is not known. */
  onProgress?(share: number): void
}

/** Writes a whole backup or none, readable only by its owner, and returns its size in bytes. */
export const writeFile = (path: string, fill: Fill): Promise<number> =>
  writeFileAtomically(path, (put) => compress(fill, put))

export async function compress(fill: Fill, put: (chunk: Uint8Array) => Promise<unknown>): Promise<number> {
  // A low level, because speed matters more than size.
  const gzip = createGzip({ level: 3 })
  let bytes = 0
  const written = pipeline(gzip, async (chunks: AsyncIterable<Uint8Array>) => {
    for await (const chunk of chunks) {
      bytes += chunk.length
      await put(chunk)
    }
  })
  // A failure is reported where `written` is awaited.
  written.catch(() => {})
  try {
    await fill(async (text) => {
      if (!gzip.write(text)) await Promise.race([once(gzip, 'drain'), written])
    })
  } catch (error) {
    gzip.destroy()
    throw error
  }
  gzip.end()
  await written
  return bytes
}

/** `path` is for messages. */
export async function* readBackup(
  path: string,
  { stream, size }: Input,
  { signal, onProgress }: ReadOptions = {},
): AsyncGenerator<string> {
  async function* count(chunks: AsyncIterable<Uint8Array>) {
    let bytes = 0
    for await (const chunk of chunks) {
      bytes += chunk.length
      if (size) onProgress?.(bytes / size)
      yield chunk
    }
  }
  const gunzip = createGunzip()
  const unpacked = pipeline(stream, count, gunzip, { signal })
  // A failure is reported where `unpacked` is awaited, or by the stream that is read.
  unpacked.catch(() => {})
  try {
    yield* readLines(gunzip)
    await unpacked
  } catch (error) {
    throw explain(error, path)
  }
}

function explain(error: unknown, path: string): unknown {
  if (error instanceof TextError) return damaged()
  const { code = '', message, syscall } = error as NodeJS.ErrnoException
  if (syscall) return new Error(`${path} cannot be read: ${message}`)
  if (!code.startsWith('Z_')) return error
  return message === 'incorrect header check' ? notOurs() : damaged()
}
