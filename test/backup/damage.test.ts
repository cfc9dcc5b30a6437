// Whatever byte of a backup is wrong, a restore either finds the damage and leaves nothing behind, or loses nothing.
import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { readBackup, writeFile } from '../../src/backup/file.ts'
import { restoreBackup } from '../../src/backup/restore.ts'
import { writeBackup } from '../../src/backup/write.ts'
import { systemClock } from '../../src/clock.ts'
import { migrate, readSchemaVersion } from '../../src/db/migrations.ts'
import { migrations } from '../../src/platform.ts'
import { inFullRun } from '../full.ts'
import { createFolder } from '../program.ts'
import { useEmptyDatabases } from './empty.ts'

/** Enough rows that the database has some of them before the end of the file is read. */
const ROWS = 6_000
const FLIPS = inFullRun(60, 12)

const openEmpty = useEmptyDatabases()
const folder = createFolder()
const file = join(folder, 'backup')
const from = await openEmpty()
await migrate(from, migrations)
await from.sql.script(`
  insert into organisations (public_id, name, plan, created_at)
  select 'org_' || n, md5(n::text), 'free', now() from generate_series(1, ${ROWS}) n`)
await writeFile(file, (write) => writeBackup(from, systemClock, 'test', write))
const whole = readFileSync(file)
const to = await openEmpty()

/** The message of a restore that failed and left nothing behind; the number of rows of one that did not fail. */
async function tryRestore(content: Uint8Array): Promise<string | number> {
  writeFileSync(file, content)
  try {
    const { rows } = await restoreBackup(to, migrations, readBackup(file))
    return rows
  } catch (error) {
    expect(await readSchemaVersion(to.sql)).toBe(0)
    return (error as Error).message
  }
}

// The ten bytes of the header of gzip are tried apart: some of them mean nothing.
const places = Array.from({ length: FLIPS }, (_, index) => Math.floor(10 + (index * (whole.length - 11)) / (FLIPS - 1)))

test.each([0, 1, 2, 3])('a flipped bit anywhere is called damage, and nothing is restored: part %d', async (part) => {
  for (const place of places.filter((_, index) => index % 4 === part)) {
    const flipped = Buffer.from(whole)
    flipped[place] = (flipped[place] as number) ^ (1 << (place % 8))
    const outcome = await tryRestore(flipped)
    expect([place, outcome]).toEqual([place, expect.stringContaining('damaged')])
  }
})

test('damage in the text is called damage when the checksum does not fit it', async () => {
  const text = gunzipSync(whole).toString()
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
  // With a checksum that fits, the file says what it says, and the message is about that.
  expect(await tryRestore(gzipSync(text.replace('"schema_version":', '"schema_version":9')))).toContain(
    'newer than the',
  )
  expect(await tryRestore(gzipSync(text.replace('{"table":"organisations"', '{"table":"organisationt"')))).toContain(
    'no table organisationt',
  )
  expect(await tryRestore(gzipSync(text.slice(0, -40)))).toContain('damaged')
})

test('a bit flipped in the header of gzip is damage, or means nothing and loses nothing', async () => {
  for (let place = 0; place < 10; place += 1) {
    const flipped = Buffer.from(whole)
    flipped[place] = (flipped[place] as number) ^ 4
    const outcome = await tryRestore(flipped)
    if (typeof outcome === 'string') expect([place, outcome]).toEqual([place, expect.stringContaining('damaged')])
    else {
      expect(outcome).toBeGreaterThanOrEqual(ROWS)
      await to.sql.script('drop schema public cascade; create schema public')
    }
  }
})
