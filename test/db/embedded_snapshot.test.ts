// Reading all of an embedded database that lies on a full disk: an engine cannot start there, since it writes.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readConfig } from '../../src/config.ts'
import type { Db } from '../../src/db/client.ts'
import { lockDataDir } from '../../src/db/data_dir.ts'
import { openDatabase } from '../../src/db/open.ts'
import { openSnapshot } from '../../src/db/snapshot.ts'
import { useFolder } from './embedded_driver.ts'

const options = { queryTimeoutMs: 0, maxConnections: 1, whenInUse: 'share' } as const
const root = useFolder()
const usualPlace = process.env.TMPDIR
let dataDir: string
let elsewhere: string

beforeEach(() => {
  const folder = mkdtempSync(join(root, 'disk-'))
  dataDir = join(folder, 'data')
  elsewhere = join(folder, 'elsewhere')
  mkdirSync(elsewhere)
  process.env.TMPDIR = elsewhere
  expect(tmpdir()).toBe(elsewhere)
})

afterEach(() => {
  if (usualPlace === undefined) delete process.env.TMPDIR
  else process.env.TMPDIR = usualPlace
})

const open = () => openDatabase(readConfig({}, { DATA_DIR: dataDir }), options)

const insert = ({ sql }: Db) =>
  sql`insert into organisations (public_id, name, plan, created_at) values ('org_1', 'Kept', 'free', now())`

/** A disk without room for the data directory, beside one with room for everything else. */
const openOnFullDisk = () =>
  openSnapshot(readConfig({}, { DATA_DIR: dataDir }), options, (folder) =>
    folder.startsWith(dataDir) ? 0 : Number.POSITIVE_INFINITY,
  )

const namesOf = ({ sql }: Db) => sql`select name from organisations`

/** Every file with what changes when it is written to. */
const filesIn = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((name) => [name, statSync(join(folder, name)).mtimeMs, statSync(join(folder, name)).size])

test('a stopped one is read from a copy elsewhere, for its owner alone, and nothing is written where it lies', async () => {
  const db = await open()
  await insert(db)
  await db.close()
  const before = filesIn(join(dataDir, 'pgdata'))
  const snapshot = await openOnFullDisk()
  expect(await namesOf(snapshot)).toEqual([{ name: 'Kept' }])
  const copies = readdirSync(elsewhere)
  expect(copies.map((name) => statSync(join(elsewhere, name)).mode & 0o777)).toEqual([0o700])
  expect(lockDataDir(dataDir)).toBeUndefined()
  await snapshot.close()
  expect(filesIn(join(dataDir, 'pgdata'))).toEqual(before)
  expect(readdirSync(elsewhere)).toEqual([])
})

test('one that is served is copied to elsewhere, and served on', async () => {
  const server = await open()
  await insert(server)
  const snapshot = await openOnFullDisk()
  expect(await namesOf(snapshot)).toEqual([{ name: 'Kept' }])
  expect(readdirSync(elsewhere).map((name) => statSync(join(elsewhere, name)).mode & 0o777)).toEqual([0o700])
  expect(existsSync(join(dataDir, 'backup', 'copy'))).toBe(false)
  await snapshot.close()
  expect(readdirSync(elsewhere)).toEqual([])
  expect(await namesOf(server)).toEqual([{ name: 'Kept' }])
  await server.close()
})
