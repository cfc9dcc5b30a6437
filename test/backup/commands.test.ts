// backup and restore as an operator runs them, on the service itself.
import { expect, test } from 'bun:test'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { backupOf, filesOf, lockDataDir } from '../../src/db/data_dir.ts'
import { type Client, createClient } from '../client.ts'
import { createDatabase, createDatabaseWithTenant, createEmptyDatabase, engine, type TestDatabase } from '../harness.ts'
import {
  createFolder,
  createOperator,
  createTenant,
  during,
  eventually,
  run,
  type Settings,
  startServer,
} from '../program.ts'
import { entry } from '../service.ts'
import { postText } from '../signals/fixtures.ts'
import { openDb } from '../tenant.ts'
import { closeAfterTest } from '../use.ts'

const folder = createFolder()
const own = async (database: Promise<TestDatabase>) => (await closeAfterTest(database)).settings

/** The service on a database; it must stop cleanly. */
async function serve(settings: Settings) {
  const server = await startServer(settings)
  const stop = async () => expect(await server.stop()).toBe(0)
  return { operator: createOperator(settings), client: await createClient(server.url), stop }
}

type Rows = (string | null)[][]

function readTables(file: string): Record<string, Rows> {
  const tables: Record<string, Rows> = {}
  let rows: Rows = []
  for (const line of gunzipSync(readFileSync(file)).toString().trimEnd().split('\n')) {
    const value = JSON.parse(line)
    if (Array.isArray(value)) rows.push(value)
    else if (value.table) {
      rows = []
      tables[value.table] = rows
    }
  }
  return tables
}

test('a restored service goes on where the backup was taken: keys, ids, history, counts, repeats', async () => {
  const from = await own(createDatabase())
  const file = join(folder, 'service.backup')
  const { client, operator, stop } = await serve(from)
  const tenant = await createTenant(from, 5)
  const imported = [entry({ prompt: tenant.prompt }), entry({ prompt: tenant.prompt, commit_sha: 'second' })]
  const stdin = imported.map((one) => JSON.stringify(one)).join('\n')
  await run(['history', 'import', '-'], { settings: from, stdin })
  const body = '{"value":"negative","metadata":{"big":9007199254740993,"exact":0.1000,"text":"\u2028"}}'
  const post = (via: Client) => postText(via, tenant, body, { 'idempotency-key': 'once' })
  const first = await post(client)
  const second = await client.postSignal(tenant.prompt, tenant.key)
  const history = await client.getHistory(tenant.prompt, tenant.key)
  const made = await operator.one('backup', file)
  expect(made).toEqual({ file, bytes: statSync(file).size, rows: expect.any(Number) })
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(readdirSync(folder)).toEqual(['service.backup'])
  await stop()

  const to = await own(createEmptyDatabase())
  expect(await createOperator(to).one('restore', file)).toEqual({ rows: made.rows, version: expect.any(Number) })
  const { client: there, stop: stopThere } = await serve(to)
  expect((await there.getHistory(tenant.prompt, tenant.key)).body).toEqual(history.body)
  const repeated = await post(there)
  expect([repeated.status, repeated.body]).toEqual([201, first.body])
  expect(repeated.headers.get('idempotent-replayed')).toBe('true')
  for (const _ of [1, 2, 3]) {
    const { body } = await there.postSignal(tenant.prompt, tenant.key)
    expect(body.data.id).toBeGreaterThan(second.body.data.id)
  }
  const refused = await there.postSignal(tenant.prompt, tenant.key)
  expect([refused.status, refused.body.error.used, refused.body.error.limit]).toEqual([429, 5, 5])
  await stopThere()
})

test('a backup under load has all that was acknowledged before it, counts what it has, and fails no request', async () => {
  const settings = await own(createDatabase())
  const file = join(folder, 'load.backup')
  const { client, operator, stop } = await serve(settings)
  const { key, prompt } = await createTenant(settings, 1_000_000)
  const acknowledged: number[] = []
  const statuses = new Set<number>()
  const post = async () => {
    const { status, body } = await client.postSignal(prompt, key)
    statuses.add(status)
    acknowledged.push(body.data.id)
  }
  let before: number[] = []
  const backUp = async () => {
    await eventually(() => acknowledged.length > 300, true)
    before = [...acknowledged]
    await operator.one('backup', file)
  }
  const backup = backUp()
  await Promise.all(Array.from({ length: 20 }, () => during(backup, post)))
  expect([...statuses]).toEqual([201])
  expect(acknowledged.length).toBeGreaterThan(before.length)
  const { signals = [], signal_usage: usage = [] } = readTables(file)
  const kept = new Set(signals.map(([id]) => Number(id)))
  expect(before.filter((id) => !kept.has(id))).toEqual([])
  expect(usage.map(([, , used]) => used)).toEqual([`${kept.size}`])
  await stop()
})

test('restore rejects a database in use, and backup an empty one', async () => {
  const settings = await own(createDatabaseWithTenant())
  const file = join(folder, 'whole.backup')
  const operator = createOperator(settings)
  const { rows } = await operator.one('backup', file)
  expect(await operator.errorLine('restore', file)).toMatch(/^The database is in use: its table \w+ has rows\./)

  const empty = await own(createEmptyDatabase())
  const other = createOperator(empty)
  expect(await other.errorLine('backup', join(folder, 'new'))).toStartWith(
    engine === 'postgres' ? 'There is nothing to back up: the database is empty.' : 'There is no database in ',
  )
  expect(await other.one('restore', file)).toMatchObject({ rows })
})

test('a backup that cannot be written leaves an existing file alone', async () => {
  const operator = createOperator(await own(createDatabase()))
  const target = join(folder, 'a folder')
  mkdirSync(target)
  for (const path of [target, '/dev/null', join(folder, 'none/x')]) {
    expect(await operator.errorLine('backup', path)).toStartWith(`${path} cannot be written: `)
  }
  expect(readdirSync(folder).filter((name) => name.endsWith('.unfinished'))).toEqual([])
  expect(statSync('/dev/null').isCharacterDevice()).toBe(true)
})

if (engine === 'embedded') {
  test('the copy that a backup works on beside a server is one at a time, and does not stay', async () => {
    const settings = await own(createDatabase())
    const place = join(settings.DATA_DIR as string, 'backup')
    const { operator, stop } = await serve(settings)
    // The file is what a killed backup leaves.
    mkdirSync(join(place, 'copy/pgdata'), { recursive: true })
    writeFileSync(join(place, 'copy/pgdata/PG_VERSION'), 'half')
    await operator.one('backup', join(folder, 'after.backup'))
    expect(readdirSync(place)).toEqual(['lock'])
    const lock = lockDataDir(place)
    expect(await operator.errorLine('backup', join(folder, 'second.backup'))).toBe(
      `Another backup of ${dirname(place)} is running.`,
    )
    lock?.release()
    expect(existsSync(join(folder, 'second.backup'))).toBe(false)
    await stop()
  })

  test('a backup beside checkpoints, each of which removes the log that a copy needs, is whole', async () => {
    const settings = await own(createDatabase())
    const file = join(folder, 'checkpoints.backup')
    const { client, operator, stop } = await serve(settings)
    const { key, prompt } = await createTenant(settings, 1_000_000)
    const db = await openDb(settings)
    await during(operator.one('backup', file), async () => {
      await client.postSignal(prompt, key)
      await db.sql.script('checkpoint')
    })
    const { signals = [], signal_usage: usage = [] } = readTables(file)
    expect(usage.map(([, , used]) => used)).toEqual([`${signals.length}`])
    await db.close()
    await stop()
  })

  test('a copy that fails, or for which the disk has no room, fails the backup and does not stay', async () => {
    const settings = await own(createDatabase())
    const { copy } = backupOf(settings.DATA_DIR as string)
    const files = filesOf(settings.DATA_DIR as string)
    const { operator, stop } = await serve(settings)
    const backUp = () => operator.errorLine('backup', join(folder, 'half.backup'))
    // It cannot be copied.
    const pipe = join(files, 'pipe')
    Bun.spawnSync(['mkfifo', pipe])
    expect(await backUp()).toContain('pipe')
    expect(existsSync(copy)).toBe(false)
    rmSync(pipe)
    const large = join(files, 'large')
    writeFileSync(large, '')
    truncateSync(large, 8 * 1024 ** 4)
    expect(await backUp()).toMatch(/^The disk of \/.* has no room for a copy: 9227\d{3} MB must be free\.$/)
    expect(existsSync(copy)).toBe(false)
    rmSync(large)
    await stop()
  })
}
