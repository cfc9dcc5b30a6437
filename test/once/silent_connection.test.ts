import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect } from 'node:net'
import postgres from 'postgres'
import { type Db, openClient } from '../../src/db/client.ts'
import { type Client, createClient } from '../client.ts'
import { createOperator, createTenant, errorLineOf, eventually, run, type Server, startServer } from '../program.ts'
import { createProxy, type TcpProxy } from '../proxy.ts'
import { startWithStandby } from '../standby.ts'
import { useDatabase } from '../use.ts'

const database = useDatabase()
let proxy: TcpProxy

beforeAll(async () => {
  proxy = await createProxy(database.settings.DATABASE_URL as string)
})

afterAll(() => proxy.close())

const openProxied = (queryTimeoutMs: number) =>
  openClient({ url: proxy.url, ssl: false }, { queryTimeoutMs, maxConnections: 2 })

/** How many sessions answer at the same time; none while one of them takes longer than its deadline. */
const countSessions = (db: Db) =>
  Promise.all(
    [1, 2].map(() => db.sql<{ pid: number }>`select pg_backend_pid() as pid, pg_sleep(0.05)`.then(([row]) => row?.pid)),
  ).then(
    (pids) => new Set(pids).size,
    () => 0,
  )

test('connections that have gone silent are replaced: those of statements and of transactions', async () => {
  const db = openProxied(500)
  const read = () => db.sql<{ n: number }>`select 1 as n`.then(([row]) => row?.n, String)
  const change = () => db.transaction((sql) => sql<{ n: number }>`select 2 as n`).then(([row]) => row?.n, String)
  // On a busy machine the first connections may take longer than a statement may.
  await eventually(() => Promise.all([read(), read(), change(), change()]), [1, 1, 2, 2])

  proxy.silence()
  expect(await Promise.all([read(), change()])).toEqual(['Error: no answer in time', 'Error: no answer in time'])
  await eventually(read, 1)
  await eventually(change, 2)

  proxy.silence()
  expect(await change()).toBe('Error: no answer in time')
  await eventually(change, 2)
  await db.close()
})

test('the primary is looked for again when silent connections are replaced, not once they are closed', async () => {
  const events: string[] = []
  const { hostname, port } = new URL(proxy.url)
  const primary = {
    hosts: 'proxy',
    connect: async () => connect(Number(port), hostname),
    forget: () => void events.push('forgotten'),
  }
  const db = openClient({ url: proxy.url, ssl: false, primary }, { queryTimeoutMs: 500, maxConnections: 1 })
  db.onConnectionLost(() => events.push('lost'))
  await eventually(() => db.sql`select 1 as n`.catch(String), [{ n: 1 }])
  proxy.silence()
  expect(await db.sql`select 1`.catch(String)).toBe('Error: no answer in time')
  await eventually(() => events.slice(0, 2), ['forgotten', 'lost'])
  await db.close()
})

test('connections that were closed as they were opened are all used again', async () => {
  const db = openProxied(500)
  proxy.setClosing(true)
  const failed = await Promise.all([1, 2, 3, 4].map(() => db.sql`select 1`.then(() => 'answered', String)))
  expect(failed).toEqual(Array(4).fill('Error: no answer in time'))
  proxy.setClosing(false)
  await eventually(() => countSessions(db), 2)
  await db.close()
})

test('a statement that waits for a lock beyond its deadline costs no connection', async () => {
  const db = openProxied(500)
  await eventually(() => countSessions(db), 2)
  const before = proxy.accepted()
  // More than there are connections: some are sent only as their own time is nearly up.
  const slow = await Promise.allSettled([1, 2, 3, 4].map(() => db.sql`select pg_sleep(1)`))
  expect(slow.map(({ status }) => status)).toEqual(Array(4).fill('rejected'))
  // Longer than a connection may be silent.
  for (const until = performance.now() + 2_500; performance.now() < until; ) {
    await db.sql`select pg_sleep(0.05)`.catch(() => {})
  }
  expect(await db.sql`select 1 as n`).toEqual([{ n: 1 }])
  expect(proxy.accepted()).toBe(before)
  await db.close()
})

test('no statement waits behind a slow one while another connection is free', async () => {
  const db = openProxied(4_500)
  const order: string[] = []
  const sleep = (name: string, seconds: number) =>
    db.sql`select pg_sleep(${seconds}::float8)`.then(() => order.push(name))
  // Known to both connections, and so sent without a question first.
  await Promise.all([sleep('', 0.05), sleep('', 0.05)])
  await Promise.all([sleep('slow', 2), sleep('quick', 0.1), sleep('first behind', 0), sleep('second behind', 0)])
  expect(order.slice(2)).toEqual(['quick', 'first behind', 'second behind', 'slow'])
  await db.close()
})

let servers: Awaited<ReturnType<typeof startWithStandby>>
let server: Server
let client: Client
let tenant: Awaited<ReturnType<typeof createTenant>>

beforeAll(async () => {
  servers = await startWithStandby()
  tenant = await createTenant({ DATABASE_URL: servers.primary.url })
  proxy = await createProxy(servers.primary.url)
  server = await startServer({ DATABASE_URL: proxy.url })
  client = await createClient(server.url)
})

afterAll(async () => {
  expect(await server.stop()).toBe(0)
  proxy.close()
  await servers.stop()
})

const ready = { ready: true, database: 'up', redis: 'unused' }
const readOnly = { ready: false, database: 'down', reason: 'read_only', redis: 'unused' }

const readiness = async () => (await client.call('GET', '/readyz')).body
const post = async () => (await client.postSignal(tenant.prompt, tenant.key)).status

/** Queries as a superuser whose own session can write, whatever is set for others. */
async function asAdmin(url: string, statement: string): Promise<void> {
  const sql = postgres(url, { max: 1, connection: { default_transaction_read_only: false } })
  await sql.unsafe(statement)
  await sql.end()
}

async function setReadOnly(value: 'on' | 'off'): Promise<void> {
  await asAdmin(servers.primary.url, `alter system set default_transaction_read_only = ${value}`)
  await asAdmin(servers.primary.url, 'select pg_reload_conf()')
}

test('the name of the database leads to a standby for a while: nothing is served from it, and it is left by itself', async () => {
  await eventually(readiness, ready)
  expect(await post()).toBe(201)
  proxy.forwardTo(servers.standby.url)
  proxy.cut('end')
  await eventually(readiness, readOnly)
  for (const until = performance.now() + 2_500; performance.now() < until; await Bun.sleep(100)) {
    expect(await readiness()).toEqual(readOnly)
  }
  expect(await post()).toBe(503)
  expect((await client.getHistory(tenant.prompt, tenant.key)).status).toBe(503)
  await eventually(() => server.stdout().includes('"reason":"the database is read-only'), true)
  proxy.forwardTo(servers.primary.url)
  await eventually(readiness, ready)
  await eventually(post, 201)
})

test('a database that is made read-only: not ready, with the reason, until it can be written to again', async () => {
  await setReadOnly('on')
  await eventually(readiness, readOnly)
  expect(await post()).toBe(503)
  await setReadOnly('off')
  await eventually(readiness, ready)
  await eventually(post, 201)
})

test('a write that finds the database read-only replaces the connections, without a look at the readiness', async () => {
  await setReadOnly('on')
  const before = proxy.accepted()
  await eventually(post, 503)
  await eventually(async () => (await post()) === 503 && proxy.accepted() > before, true)
  await setReadOnly('off')
  await eventually(post, 201)
})

test('a service does not start on a standby, and says why; what only reads works there', async () => {
  const settings = { DATABASE_URL: servers.standby.url, LOG_LEVEL: 'error' }
  const { host } = new URL(servers.standby.url)
  expect(errorLineOf(await run(['serve'], { settings }))).toBe(
    `The database at ${host} cannot be used: the database is read-only (a standby, or default_transaction_read_only is on)`,
  )
  for (const command of ['orgs list', 'backup -']) expect((await run(command.split(' '), { settings })).status).toBe(0)
})

test('commands on a standby count the signals, however many of them are not in the counts yet', async () => {
  const onPrimary = createOperator({ DATABASE_URL: servers.primary.url })
  const settings = { DATABASE_URL: servers.standby.url }
  const { org, prompt } = await createTenant({ DATABASE_URL: servers.primary.url })
  await onPrimary.one(
    ...['history', 'record', '--prompt', prompt, '--action', 'deployed', '--commit-sha', 'c1', '--branch', 'main'],
    ...['--user-name', 'Ada', '--user-email', 'ada@example.com', '--created-at', '2026-01-01T00:00:00Z'],
  )
  await asAdmin(
    servers.primary.url,
    `insert into signals (organisation_id, prompt_id, value, created_at)
    select p.organisation_id, p.id, 'positive', now() from prompts p, generate_series(1, 2500)
    where p.public_id = '${prompt}'`,
  )
  const list = ['signals', 'list', '--prompt', prompt, '--limit', '1', '--json']
  await eventually(async () => (await run(list, { settings })).stdout.includes('positive'), true)
  const { one, json } = createOperator(settings)
  const days = await json('signals', 'stats', '--prompt', prompt)
  expect(days.reduce((sum, { total }) => sum + total, 0)).toBe(2_500)
  expect(await one('usage', '--org', org)).toMatchObject({ prompts: [{ prompt, total: 2_500 }] })
  expect(await one('impact', '--prompt', prompt)).toMatchObject({ signals: { total: 2_500 } })
})

test('a standby that is promoted is served from', async () => {
  proxy.forwardTo(servers.standby.url)
  proxy.cut('reset')
  await eventually(readiness, readOnly)
  await asAdmin(servers.standby.url, 'select pg_promote()')
  await eventually(readiness, ready)
  await eventually(post, 201)
})
