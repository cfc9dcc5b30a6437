import { afterAll, beforeAll, expect, test } from 'bun:test'
import postgres from 'postgres'
import { type Client, createClient } from '../client.ts'
import { createOperator, createTenant, errorLineOf, eventually, run, type Server, startServer } from '../program.ts'
import { createProxy, type TcpProxy } from '../proxy.ts'
import { startWithStandby } from '../standby.ts'

let servers: Awaited<ReturnType<typeof startWithStandby>>
let proxy: TcpProxy
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

test('a database that is made read-only: a write replaces the connections, and it is not ready until it can be written to', async () => {
  await setReadOnly('on')
  const before = proxy.accepted()
  await eventually(post, 503)
  // Without a look at the readiness.
  await eventually(async () => (await post()) === 503 && proxy.accepted() > before, true)
  await eventually(readiness, readOnly)
  expect(await post()).toBe(503)
  await setReadOnly('off')
  await eventually(readiness, ready)
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
  const { one } = createOperator(settings)
  expect(await one('signals', 'stats', '--prompt', prompt)).toMatchObject({ totals: { total: 2_500 } })
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
