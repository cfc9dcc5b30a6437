import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { describeCount } from '../../src/cli/progress.ts'
import { createDatabaseWithTenant, createEmptyDatabase } from '../harness.ts'
import { createFolder, onTerminal } from '../program.ts'
import { entry } from '../service.ts'
import { closeAfterTest } from '../use.ts'

test('backup, restore and import show how far they are, on a terminal alone', async () => {
  const database = await closeAfterTest(createDatabaseWithTenant())
  const empty = await closeAfterTest(createEmptyDatabase())
  const folder = createFolder()
  const { prompt } = database.tenant
  const lines = join(folder, 'lines')
  await Bun.write(lines, `${JSON.stringify(entry({ prompt }))}\n${JSON.stringify(entry({ prompt }))}\n`)
  const imported = await onTerminal(['history', 'import', lines], database.settings)
  expect(imported).toContain('\r2 lines recorded, 100 %')
  expect(imported).toEndWith('\r\u001b[Krecorded 2, already known 0\r\n')
  const file = join(folder, 'backup')
  expect(await onTerminal(['backup', file], database.settings)).toMatch(/\r\d+ rows/)
  expect(await onTerminal(['restore', file], empty.settings)).toMatch(/\r\d+ rows, 100 %/)
})

test('a count has its share and the time left where they are known', () => {
  expect(describeCount(1_234_567, 'rows', null, 5_000)).toBe('1,234,567 rows')
  expect(describeCount(10, 'rows', 0.25, 500)).toBe('10 rows, 25 %')
  expect(describeCount(10, 'rows', 0.25, 10_000)).toBe('10 rows, 25 %, about 30 s left')
  expect(describeCount(10, 'rows', 0.1, 20_000)).toBe('10 rows, 10 %, about 3 min 0 s left')
  expect(describeCount(10, 'rows', 1.5, 20_000)).toBe('10 rows')
})
