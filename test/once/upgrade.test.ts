import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import type { Db } from '../../src/db/client.ts'
import { migrate } from '../../src/db/migrations.ts'
import { migrations } from '../../src/platform.ts'
import type { Answer } from '../client.ts'
import { inFullRun } from '../full.ts'
import { createDatabaseWithTenant, createEmptyDatabase } from '../harness.ts'
import { createOperator, eventually, readJsonLines, run, type Server, startServer, whileLocked } from '../program.ts'
import { withPostgres } from '../services.ts'
import { formatSignal, isWhole, openConnection } from '../socket.ts'
import { urlOfDatabase } from '../templates.ts'
import { openDb } from '../tenant.ts'
import { closeAfterTest, useProgram } from '../use.ts'

let db: Db
/** The migrations of a newer release. */
const newer = [...migrations]

afterAll(() => db.close())
const { client, operator, settings, tenant } = useProgram()

beforeAll(async () => {
  db = await openDb(settings, { maxConnections: 2 })
})

/** Callers of both operations and of the readiness, one request after another, until they are stopped. */
function load() {
  const answers: number[] = []
  let settled = false
  const calls = [
    () => client.postSignal(tenant.prompt, tenant.key),
    () => client.getHistory(tenant.prompt, tenant.key),
    () => client.call('GET', '/readyz'),
  ]
  const callers = Array.from({ length: 12 }, async (_, index) => {
    while (!settled) answers.push((await (calls[index % 3] as () => Promise<Answer>)()).status)
  })
  const more = (count: number) => {
    const wanted = answers.length + count
    return eventually(() => answers.length >= wanted, true)
  }
  const end = async () => {
    settled = true
    await Promise.all(callers)
    return [...new Set(answers)].sort()
  }
  return { more, end }
}

// From 1.1 on, test:all also runs the binary of 1.0, from the files of its release, on the new schema.
test('a replica of the older release serves on, and stays ready, while the schema becomes newer', async () => {
  // It was not probed before, so that it has no result from before the migration.
  const other = await startServer(settings)
  const { more, end } = load()
  await more(200)
  const [same] = await db.sql<{ text: string }>`select pg_get_functiondef('write_signals'::regproc) as text`
  const text = `
    alter table signals add column note text;
    alter table prompts add column archived_at timestamptz, add column rank integer not null default 0;
    alter table organisations add column region text not null default 'eu';
    alter table api_keys add column note text;
    create table later (id bigint primary key);
    ${same?.text};`
  newer.push({ name: 'expand', text })
  await migrate(db, newer)
  await more(200)
  expect(await end()).toEqual([200, 201])
  await eventually(async () => (await fetch(`${other.url}/readyz`)).status, 200)
  expect(await other.stop()).toBe(0)
  // A replica that starts now must be of the newer release.
  expect(await operator.errorLine('serve')).toContain('use a newer prompt-signals')
})

test('a migration gives up a table that is locked, rather than block the replicas behind it', async () => {
  const blocked = { name: 'blocked', text: 'alter table prompts add column blocked text' }
  await whileLocked(settings, 'select from prompts limit 1', async () => {
    const { more, end } = load()
    await more(20)
    const rejection = await migrate(db, [...newer, blocked]).catch((error: Error) => error.message)
    expect(rejection).toBe('The tables are locked, perhaps by a backup. Nothing was migrated: try again later.')
    await more(20)
    expect(await end()).toEqual([200, 201])
  })
  expect(await migrate(db, [...newer, blocked])).toMatchObject({ applied: ['blocked'] })
})

// What only a Postgres server makes possible: many concurrent migrators, and a database of another encoding.

const migrators = inFullRun(20, 6)

/** Makes every change of the schema slow, so that concurrent migrators are sure to overlap. */
const slowChanges = `
  create schema slow;
  create function slow.down() returns event_trigger language plpgsql as 'begin perform pg_sleep(0.03); end';
  create event trigger slow_down on ddl_command_start execute function slow.down()`

test('concurrent migrators all succeed, and each migration is applied once', async () => {
  const { settings } = await closeAfterTest(createEmptyDatabase())
  const url = settings.DATABASE_URL as string
  await withPostgres(url, (sql) => sql.unsafe(slowChanges))
  const finished = await Promise.all(Array.from({ length: migrators }, () => run(['migrate', '--json'], { settings })))
  expect(finished.map(({ status, stderr }) => ({ status, stderr }))).toEqual(
    Array(migrators).fill({ status: 0, stderr: '' }),
  )
  const results = finished.flatMap(({ stdout }) => readJsonLines(stdout))
  const names = migrations.map(({ name }) => name)
  expect(results.flatMap(({ applied }) => applied)).toEqual(names)
  expect(results.map(({ version }) => version)).toEqual(Array(migrators).fill(names.length))
  const rows = await withPostgres(url, (sql) => sql`select name from schema_migrations order by version`)
  expect(rows.map(({ name }) => name)).toEqual(names)
})

test('a database that cannot hold every text is rejected', async () => {
  const { settings } = await closeAfterTest(createEmptyDatabase())
  const url = settings.DATABASE_URL as string
  const name = new URL(url).pathname.slice(1)
  await withPostgres(urlOfDatabase(url, 'postgres'), async (sql) => {
    await sql`drop database ${sql(name)} with (force)`
    await sql.unsafe(`create database ${name} encoding 'SQL_ASCII' template template0 lc_collate 'C' lc_ctype 'C'`)
  })
  expect(await createOperator(settings).errorLine('migrate')).toBe(
    'The database is encoded as SQL_ASCII; create it with encoding UTF8.',
  )
  const tables = await withPostgres(url, (sql) => sql`select 1 from pg_tables where schemaname = 'public'`)
  expect(tables).toHaveLength(0)
})

/** Gives the connections that a closed listener has not accepted to another one. Only root can set it. */
const migration = '/proc/sys/net/ipv4/tcp_migrate_req'
const before = readFileSync(migration)
try {
  writeFileSync(migration, '1')
} catch {}
const isMigrating = readFileSync(migration, 'utf8').trim() === '1'

const database = await createDatabaseWithTenant()
const servers: Server[] = []
afterAll(async () => {
  for (const server of servers) await server.kill()
  await database.close()
  if (isMigrating) writeFileSync(migration, before)
})

async function start(port = '0'): Promise<Server> {
  const settings = { REUSE_PORT: 'on', PORT: port, METRICS_ADDRESS: '127.0.0.1:0' }
  const server = await startServer({ ...database.settings, ...settings })
  servers.push(server)
  return server
}

/** The POSTs that this process itself has answered. */
async function countOf(server: Server): Promise<number> {
  const [{ metrics }] = server.log() as [{ metrics: string }]
  const text = await (await fetch(metrics)).text()
  return Number(/^prompt_signals_signals_total\{outcome="recorded"\} (\d+)$/m.exec(text)?.[1] ?? 0)
}

test('processes share a port, and a rolling restart of them loses no request', async () => {
  const first = await start()
  const { port } = new URL(first.url)
  const second = await start(port)
  const text = formatSignal(database.tenant)
  let [isOver, recorded] = [false, 0]
  /** Sends five requests on each connection, or fewer when a response closes it. */
  const keepPosting = async () => {
    while (!isOver) {
      const { socket, answer, until } = await openConnection(first.url)
      for (let sent = 0, isClosing = false; sent < 5 && !isClosing; sent += 1) {
        const known = answer().length
        socket.write(text)
        await until((all) => isWhole(all.slice(known)))
        const response = answer().slice(known)
        // Never accepted, so nothing was recorded.
        if (response === '' && sent === 0 && !isMigrating) break
        expect(response).toStartWith('HTTP/1.1 201 ')
        recorded += 1
        isClosing = /^connection: close\r?$/im.test(response)
      }
      socket.destroy()
    }
  }
  const callers = Promise.all(Array.from({ length: 16 }, keepPosting))
  for (const server of [first, second]) {
    // Each of them has a part of the connections.
    await eventually(async () => (await countOf(server)) > 50, true)
    const successor = await start(port)
    expect(await server.stop()).toBe(0)
    await eventually(async () => (await countOf(successor)) > 50, true)
  }
  isOver = true
  await callers
  expect(await createOperator(database.settings).one('orgs', 'list')).toMatchObject({ used: recorded })
})
