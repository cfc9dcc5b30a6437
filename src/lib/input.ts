import { createReadStream, fstatSync, open } from 'node:fs'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { ServiceError } from '../errors.ts'

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

export class TextError extends Error {}

/** Far longer than any valid line. A file without line feeds must not fill the memory. */
export const maxLineLength = 16 * 1024 * 1024

const lineTooLong = () => new TextError(`a line is longer than ${maxLineLength} characters`)

/** Passes chunks on, and fails at a line that is too long: an endless one, such as /dev/zero, must not be waited for. */
export async function* boundLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let length = 0
  for await (const chunk of chunks) {
    const end = chunk.lastIndexOf(0x0a)
    length = end === -1 ? length + chunk.length : chunk.length - end
    if (length > maxLineLength) throw lineTooLong()
    yield chunk
  }
}

/** Decodes UTF-8 and splits it only at line feeds. The last line need not end in one. */
export async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  // The parts are joined only once: searching all of them again with each chunk would make a long line slow.
  let parts: string[] = []
  let length = 0
  for await (const chunk of chunks) {
    const [end = '', ...lines] = decode(decoder, chunk).split('\n')
    parts.push(end)
    length += end.length
    if (length > maxLineLength) throw lineTooLong()
    if (lines.length === 0) continue
    const rest = lines.pop() as string
    yield parts.join('')
    yield* lines
    parts = [rest]
    length = rest.length
  }
  const last = parts.join('') + decode(decoder)
  if (last !== '') yield last
}

function decode(decoder: TextDecoder, chunk?: Uint8Array): string {
  try {
    return decoder.decode(chunk, { stream: chunk !== undefined })
  } catch {
    throw new TextError('it is not UTF-8')
  }
}

/** Names the line in the error of the work. */
export async function atLine<T>(lineNumber: number, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    throw new ServiceError(error.code, `Line ${lineNumber}: ${error.message}`, error.context)
  }
}

export function parseJsonLine(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    throw new ServiceError('validation_error', 'This is not JSON.')
  }
}
