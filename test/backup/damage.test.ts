// Whatever byte of a backup is wrong, a restore either finds the damage and leaves nothing behind, or loses nothing.
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { readBackup, writeFile } from '../../src/backup/file.ts'
import { restoreBackup } from '../../src/backup/restore.ts'
import { writeBackup } from '../../src/backup/write.ts'
import { describeCount } from '../../src/cli/progress.ts'
import { systemClock } from '../../src/clock.ts'
import { migrate, readSchemaVersion } from '../../src/db/migrations.ts'
import { maxLineLength, openInput } from '../../src/lib/input.ts'
import { migrations } from '../../src/platform.ts'
import { inFullRun } from '../full.ts'
import { createFolder, rejectionOf } from '../program.ts'
import { useEmptyDatabases } from './empty.ts'

/** Enough rows that the database has some of them before the end of the file is read. */
const ROWS = 6_000
const FLIPS = inFullRun(60, 8)
/** Of the header of gzip: the magic number, the flags, the time, and what means nothing. */
const HEADER = inFullRun([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [0, 3, 4, 9])

const openEmpty = useEmptyDatabases()
const folder = createFolder()
const file = join(folder, 'backup')
const from = await openEmpty()
await migrate(from, migrations)
await from.sql.script(`
  insert into organisations (public_id, name, plan, monthly_limit, created_at)
  select 'org_' || n, md5(n::text), 'free', 1000, now() from generate_series(1, ${ROWS}) n`)
await writeFile(file, (write) => writeBackup(from, systemClock, 'test', write))
const whole = readFileSync(file)
const to = await openEmpty()

/** The message of a restore that failed and left nothing behind; the number of rows of one that did not fail. */
async function tryRestore(content: Uint8Array): Promise<string | number> {
  writeFileSync(file, content)
  try {
    const { rows } = await restoreBackup(to, migrations, readBackup(file, await openInput(file)))
    return rows
  } catch (error) {
    expect(await readSchemaVersion(to.sql)).toBe(0)
    return (error as Error).message
  }
}

const flip = (place: number, bit: number) => whole.with(place, (whole[place] as number) ^ bit)

// The ten bytes of the header of gzip are tried apart: some of them mean nothing.
const places = Array.from({ length: FLIPS }, (_, index) => Math.floor(10 + (index * (whole.length - 11)) / (FLIPS - 1)))

test.each([0, 1, 2, 3])('a flipped bit anywhere is called damage, and nothing is restored: part %d', async (part) => {
  for (const place of places.filter((_, index) => index % 4 === part)) {
    const outcome = await tryRestore(flip(place, 1 << (place % 8)))
    expect([place, outcome]).toEqual([place, expect.stringContaining('damaged')])
  }
})

test('damage in the text is called damage when the checksum does not fit it', async () => {
  const changes: [string, string][] = [
    ['"schema_version":', '"schema_version":9'],
    ['{"table":"organisations"', '{"table":"organisationt"'],
    ['"public_id"', '"public_ie"'],
    ['{"sequence":"', '{"sequence":"x'],
    ['"org_1"', '"org_2"'],
    ['"free"', '"fref"'],
  ]
  const trailer = whole.subarray(-8)
  for (const [right, wrong] of changes) {
    expect(text).toContain(right)
    const packed = gzipSync(text.replace(right, wrong))
    const spoilt = Buffer.concat([packed.subarray(0, -8), trailer])
    expect([wrong, await tryRestore(spoilt)]).toEqual([wrong, expect.stringContaining('damaged')])
  }
})

const text = gunzipSync(whole).toString()
const lines = text.trimEnd().split('\n')
const row = lines.findIndex((line) => line.includes('"free"'))
const damaged = 'The backup is damaged or cut off. Nothing was restored.'
const notOurs = 'This is not a backup made by prompt-signals, or it is damaged. Nothing was restored.'

test.each<[string, string[], string]>([
  ['without any line', [], notOurs],
  ['without its header', lines.slice(1), notOurs],
  ['with the header only', lines.slice(0, 1), damaged],
  ['cut off after some rows', lines.slice(0, row + 1), damaged],
  ['without its end', lines.slice(0, -1), damaged],
  ['without one of its rows', lines.toSpliced(row, 1), damaged],
  ['with a wrong value', lines.toSpliced(row, 1, '["free", "many"]'), damaged],
  ['with a row that is nested', lines.toSpliced(row, 1, `${'['.repeat(100_000)}${']'.repeat(100_000)}`), damaged],
  ['with half a row', lines.toSpliced(row, 1, '["free", "1000"'), damaged],
  ['with a row twice', lines.toSpliced(row, 0, lines[row] as string), damaged],
  ['with a row before any table', lines.toSpliced(1, 0, '["free", "1"]'), damaged],
  ['with a row after its end', [...lines, '["free", "1"]'], damaged],
  ['with another end', [...lines, '{"end":4}'], damaged],
  ['of a newer schema', [text.replace('"schema_version":', '"schema_version":9').trimEnd()], 'newer than the'],
  ['with an unknown table', lines.toSpliced(1, 0, '{"table":"unknown","columns":[]}'), 'no table unknown with'],
])('a backup %s, with a checksum that fits, is rejected', async (_, content, message) => {
  expect(await tryRestore(gzipSync(`${content.join('\n')}\n`))).toContain(message)
})

test.each<[string, Uint8Array, string]>([
  ['an empty file', Buffer.alloc(0), damaged],
  ['a text', Buffer.from('hello\n'), notOurs],
  ['a file that is not UTF-8', gzipSync(Buffer.from([0x5b, 0xff, 0x5d, 0x0a])), damaged],
  ['a file without its last byte', whole.subarray(0, -1), damaged],
  ['a file without its checksum', whole.subarray(0, -8), damaged],
  ['a file with one giant line', gzipSync(`{"format":"${'x'.repeat(maxLineLength + 1)}"}\n`), damaged],
  ['half a file', whole.subarray(0, whole.length >> 1), damaged],
])('%s is rejected', async (_, content, message) => {
  expect(await tryRestore(content)).toBe(message)
})

test('a bit flipped in the header of gzip is damage, or means nothing and loses nothing', async () => {
  for (const place of HEADER) {
    const outcome = await tryRestore(flip(place, 4))
    if (typeof outcome === 'string') expect([place, outcome]).toEqual([place, expect.stringContaining('damaged')])
    else {
      expect(outcome).toBeGreaterThanOrEqual(ROWS)
      await to.sql.script('drop schema public cascade; create schema public')
    }
  }
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

test('a count has its share where it is known', () => {
  expect(describeCount(1_234_567, 'rows', null)).toBe('1,234,567 rows')
  expect(describeCount(10, 'rows', 0.25)).toBe('10 rows, 25 %')
  expect(describeCount(10, 'rows', 1.5)).toBe('10 rows')
})

test('a row whose JSON is nested deeply is damage, which neither ends the engine nor holds it', async () => {
  const heading = lines.findIndex((line) => line.startsWith('{"table":"signals"'))
  const { columns } = JSON.parse(lines[heading] as string)
  const rowWith = (depth: number) =>
    JSON.stringify(columns.map((name: string) => (name === 'metadata' ? '['.repeat(depth) + ']'.repeat(depth) : null)))
  for (const depth of [101, 6_000, 1_000_000]) {
    const content = lines.toSpliced(heading + 1, 0, rowWith(depth))
    expect(await tryRestore(gzipSync(`${content.join('\n')}\n`))).toBe(damaged)
  }
})
