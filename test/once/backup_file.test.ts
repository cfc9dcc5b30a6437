// Backups as files, without a database.
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { readBackup, writeFile } from '../../src/backup/file.ts'
import { formatHeader } from '../../src/backup/format.ts'
import { createFolder } from '../program.ts'

const folder = createFolder()
const file = join(folder, 'backup')

async function readAll(content: Uint8Array | string): Promise<string[]> {
  writeFileSync(file, content)
  const lines = []
  for await (const line of readBackup(file)) lines.push(line)
  return lines
}

const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => 'nothing failed',
    (error: Error) => error.message,
  )

const damaged = 'The backup is damaged or cut off. Nothing was restored.'
const notOurs = 'This is not a backup made by prompt-signals, or it is damaged. Nothing was restored.'

test('what was written is read again, line by line, whatever characters are in it', async () => {
  const rows = Array.from({ length: 5_000 }, (_, index) =>
    JSON.stringify([`${index}`, '\u2028\u2029\u0085\r€😀', null]),
  )
  const head = formatHeader(3, 'test', new Date(0))
  const bytes = await writeFile(file, async (write) => {
    await write(head)
    for (const row of rows) await write(`${row}\n`)
  })
  const content = readFileSync(file)
  expect(content.length).toBe(bytes)
  expect(await readAll(content)).toEqual([head.trimEnd(), ...rows])
  for (const length of [content.length - 1, content.length - 8, content.length - 9, content.length >> 1]) {
    expect(await failureOf(readAll(content.subarray(0, length)))).toBe(damaged)
  }
  const changed = Buffer.from(content)
  changed.writeUInt8(changed.readUInt8(content.length - 6) ^ 1, content.length - 6)
  expect(await failureOf(readAll(changed))).toBe(damaged)
})

test('of two that are written concurrently under one name, one remains, and is whole', async () => {
  const folder = createFolder()
  const both = join(folder, 'both')
  const started = Promise.withResolvers<void>()
  const first = writeFile(both, async (write) => {
    await write('first\n')
    await started.promise
    await write('first\n')
  })
  const second = writeFile(both, async (write) => {
    await write('second\n')
    started.resolve()
    await first
    await write('second\n')
  })
  await first
  expect(gunzipSync(readFileSync(both)).toString()).toBe('first\nfirst\n')
  await second
  expect(gunzipSync(readFileSync(both)).toString()).toBe('second\nsecond\n')
  expect(readdirSync(folder)).toEqual(['both'])
})

test('a text is no backup, and an empty file a damaged one', async () => {
  expect(await failureOf(readAll('hello\n'))).toBe(notOurs)
  expect(await failureOf(readAll(''))).toBe(damaged)
})

test('what is not UTF-8 is damaged', async () => {
  expect(await failureOf(readAll(gzipSync(Buffer.from([0x5b, 0xff, 0x5d, 0x0a]))))).toBe(damaged)
})

test('a file or folder that cannot be read is named', async () => {
  const missing = join(folder, 'none')
  const read = (path: string) => failureOf(readBackup(path).next())
  expect(await read(missing)).toStartWith(`${missing} cannot be read: `)
  expect(await read(folder)).toStartWith(`${folder} cannot be read: `)
})

test('a backup that fails half-way leaves the one before it, and nothing else', async () => {
  writeFileSync(file, 'the one before')
  const fill = async (write: (text: string) => Promise<void>) => {
    await write('half')
    throw new Error('the database is gone')
  }
  expect(await failureOf(writeFile(file, fill))).toBe('the database is gone')
  expect(readFileSync(file, 'utf8')).toBe('the one before')
  expect(readdirSync(folder)).toEqual(['backup'])
})
