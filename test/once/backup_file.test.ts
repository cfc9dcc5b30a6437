import { expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { writeFile } from '../../src/backup/file.ts'
import { createFolder, rejectionOf } from '../program.ts'

const folder = createFolder()
const file = join(folder, 'backup')

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
