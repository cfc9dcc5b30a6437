import { addAbortSignal, Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { readLines } from '../lib/input.ts'

/**
 * Keeps the input compressed in memory, and returns a function that reads its lines: an import reads them twice, and slow
 * input must not hold a transaction open.
 */
export async function keepLines(
  file: string,
  input: Readable,
  signal: AbortSignal,
): Promise<() => AsyncIterable<string>> {
  const gzip = createGzip({ level: 1 })
  const [kept] = await Promise.all([buffer(gzip), pipeline(input, gzip, { signal })]).catch((error) => {
    throw unreadable(file, error)
  })
  return async function* () {
    try {
      yield* readLines(addAbortSignal(signal, Readable.from([kept]).pipe(createGunzip())))
    } catch (error) {
      throw unreadable(file, error)
    }
  }
}

const unreadable = (file: string, error: unknown) => new Error(`${file} cannot be read: ${(error as Error).message}`)
