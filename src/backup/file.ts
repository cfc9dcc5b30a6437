// Backups in files and pipes; "-" is standard output or input.
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { open, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { randomBase62 } from '../lib/base62.ts'
import { BackupError, damaged, notOurs } from './format.ts'

type Write = (text: string) => Promise<void>
type Fill = (write: Write) => Promise<unknown>

/** Far longer than any row. */
const maxLine = 64 * 1024 * 1024

/** Gives the file its name once it is whole and on the disk, so that what has the name is a backup; its size. */
export async function writeFile(path: string, fill: Fill): Promise<number> {
  const cannot = (reason: string) => new Error(`${path} cannot be written: ${reason}`)
  const there = await stat(path).catch(() => undefined)
  // A device would be replaced by a file of its name.
  if (there && !there.isFile()) throw cannot('there is something else of this name')
  // Of its own, for there may be others on the way to this name.
  const unfinished = `${path}.${randomBase62(6)}.unfinished`
  // It holds names, addresses and the hashes of keys: for its owner alone.
  const file = await open(unfinished, 'w', 0o600).catch((error) => {
    throw cannot(error.message)
  })
  try {
    const bytes = await compress(fill, (chunk) => file.writeFile(chunk))
    await file.sync()
    await file.close()
    await rename(unfinished, path)
    await syncFolder(dirname(path))
    return bytes
  } catch (error) {
    await file.close().catch(() => {})
    await rm(unfinished, { force: true })
    throw error
  }
}

export async function writeStandardOutput(fill: Fill): Promise<void> {
  // The write itself tells of a failure; without a listener the process would end where it stands.
  process.stdout.on('error', () => {})
  const put = (chunk: Uint8Array) =>
    new Promise<void>((resolve, reject) => process.stdout.write(chunk, (error) => (error ? reject(error) : resolve())))
  await compress(fill, put)
}

async function compress(fill: Fill, put: (chunk: Uint8Array) => Promise<unknown>): Promise<number> {
  // Quick rather than small.
  const gzip = createGzip({ level: 3 })
  let bytes = 0
  const target = new Writable({
    write(chunk: Uint8Array, _encoding, done) {
      bytes += chunk.length
      put(chunk).then(() => done(), done)
    },
  })
  const written = pipeline(gzip, target)
  // Heard of where it is waited for.
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

/** The lines of a backup. Cut only at line feeds: a row may hold the other characters that end a line for some. */
export async function* readLines(path: string): AsyncGenerator<string> {
  const input = path === '-' ? process.stdin : createReadStream(path)
  const gunzip = createGunzip()
  const read = pipeline(input, gunzip)
  read.catch(() => {})
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let rest = ''
  let isFirst = true
  try {
    for await (const chunk of gunzip) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
      rest = lines.pop() as string
      if (rest.length > maxLine) throw damaged()
      isFirst &&= lines.length === 0
      yield* lines
    }
    await read
  } catch (error) {
    throw explain(error, path, isFirst)
  }
  if (rest !== '') throw isFirst ? notOurs() : damaged()
}

function explain(error: unknown, path: string, isFirst: boolean): unknown {
  if (error instanceof BackupError) return error
  const { code = '', message, syscall } = error as NodeJS.ErrnoException
  if (syscall) return new Error(`${path} cannot be read: ${message}`)
  const isContent = code.startsWith('Z_') || error instanceof TypeError
  if (!isContent) return error
  return isFirst ? notOurs() : damaged()
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
