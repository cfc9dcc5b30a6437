import { createReadStream } from 'node:fs'
import { addAbortSignal, Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { boundLines, type Input, readLines } from '../lib/input.ts'

/**
 * Returns a function that reads the lines of the input: an import reads them twice, and slow input must not hold a
 * transaction open. A file is read again; anything else is kept compressed in memory.
 */
export async function keepLines(
  file: string,
  { stream, size }: Input,
  signal: AbortSignal,
): Promise<() => AsyncIterable<string>> {
  const open = size === undefined ? await keep(file, stream, signal) : () => createReadStream(file)
  return async function* () {
    try {
      yield* readLines(addAbortSignal(signal, open()))
    } catch (error) {
      throw unreadable(file, error)
    }
  }
}

async function keep(file: string, input: Readable, signal: AbortSignal): Promise<() => Readable> {
  const gzip = createGzip({ level: 1 })
  const [kept] = await Promise.all([buffer(gzip), pipeline(input, boundLines, gzip, { signal })]).catch((error) => {
    throw unreadable(file, error)
  })
  return () => Readable.from([kept]).pipe(createGunzip())
}

const unreadable = (file: string, error: unknown) => new Error(`${file} cannot be read: ${(error as Error).message}`)
