import { expect, test } from 'bun:test'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { readBackup, writeFile } from '../../src/backup/file.ts'
import { formatHeader } from '../../src/backup/format.ts'
import { openInput } from '../../src/lib/input.ts'
import { createFolder, rejectionOf } from '../program.ts'

const folder = createFolder()
const file = join(folder, 'backup')

test('what was written is read again, line by line, whatever characters are in it', async () => {
  const rows = Array.from({ length: 5_000 }, (_, index) =>
    JSON.stringify([`${index}`, '\u2028\u2029\u0085\r€😀', null]),
  )
  const head = formatHeader(3, 'test', new Date(0))
  const bytes = await writeFile(file, async (write) => {
    await write(head)
    for (const row of rows) await write(`${row}\n`)
  })
  expect(statSync(file).size).toBe(bytes)
  expect(await Array.fromAsync(readBackup(file, await openInput(file)))).toEqual([head.trimEnd(), ...rows])
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

test('a backup that fails half-way leaves the one before it, and nothing else', async () => {
  writeFileSync(file, 'the one before')
  const fill = async (write: (text: string) => Promise<void>) => {
    await write('half')
    throw new Error('the database is gone')
  }
  expect(await rejectionOf(writeFile(file, fill))).toBe('the database is gone')
  expect(readFileSync(file, 'utf8')).toBe('the one before')
  expect(readdirSync(folder)).toEqual(['backup'])
})
