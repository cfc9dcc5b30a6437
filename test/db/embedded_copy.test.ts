import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { copyWhileWritten } from '../../src/db/snapshot.ts'
import { createFolder, eventually } from '../program.ts'

const folder = createFolder()

/** Files whose copy takes long enough for one of them to change meanwhile. */
function createFiles(name: string) {
  const from = join(folder, name)
  for (const part of ['global', 'base', 'pg_wal']) mkdirSync(join(from, part), { recursive: true })
  const control = join(from, 'global/pg_control')
  writeFileSync(control, 'checkpoint 1')
  writeFileSync(join(from, 'pg_wal/1'), '')
  for (let number = 0; number < 2_000; number++) writeFileSync(join(from, 'base', String(number)), '')
  return { from, to: join(folder, `${name}-copy`), control, log: join(from, 'pg_wal') }
}

/** Copies, and makes a change while the many files are copied. */
async function copyDuring(from: string, to: string, change: () => void): Promise<boolean> {
  const copying = copyWhileWritten(from, to)
  await eventually(() => existsSync(join(to, 'base')), true)
  change()
  return copying
}

test('the log is copied after what it describes', async () => {
  const { from, to, log } = createFiles('quiet')
  expect(await copyDuring(from, to, () => writeFileSync(join(log, '1'), 'later'))).toBe(true)
  expect(readdirSync(to).sort()).toEqual(['base', 'global', 'pg_wal'])
  expect(readFileSync(join(to, 'pg_wal/1'), 'utf8')).toBe('later')
})

test('a copy during which a checkpoint came is not whole', async () => {
  const { from, to, control } = createFiles('busy')
  expect(await copyDuring(from, to, () => writeFileSync(control, 'checkpoint 2'))).toBe(false)
})

test('a copy before which a file went away is not whole', async () => {
  const { from, to, log } = createFiles('gone')
  expect(await copyDuring(from, to, () => rmSync(log, { recursive: true }))).toBe(false)
})
