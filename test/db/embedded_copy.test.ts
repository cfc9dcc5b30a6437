import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { copyWhileWritten } from '../../src/db/snapshot.ts'
import { createFolder } from '../program.ts'

const folder = createFolder()

/** Files whose copy takes long enough for one of them to change meanwhile. */
function createFiles(name: string) {
  const from = join(folder, name)
  for (const part of ['global', 'base', 'pg_wal']) mkdirSync(join(from, part), { recursive: true })
  const control = join(from, 'global/pg_control')
  writeFileSync(control, 'checkpoint 1')
  writeFileSync(join(from, 'pg_wal/1'), '')
  writeFileSync(join(from, 'base/large'), '')
  truncateSync(join(from, 'base/large'), 256 * 1024 ** 2)
  return { from, to: join(folder, `${name}-copy`), control, log: join(from, 'pg_wal/1') }
}

test('the log is copied after what it describes', async () => {
  const { from, to, log } = createFiles('quiet')
  const copying = copyWhileWritten(from, to)
  await Bun.sleep(2)
  writeFileSync(log, 'later')
  expect(await copying).toBe(true)
  expect(readdirSync(to).sort()).toEqual(['base', 'global', 'pg_wal'])
  expect(readFileSync(join(to, 'pg_wal/1'), 'utf8')).toBe('later')
})

test('a copy during which a checkpoint came is not whole', async () => {
  const { from, to, control } = createFiles('busy')
  const copying = copyWhileWritten(from, to)
  await Bun.sleep(2)
  writeFileSync(control, 'checkpoint 2')
  expect(await copying).toBe(false)
})
