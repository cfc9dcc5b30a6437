import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createClient } from '../client.ts'
import { createOperator, createTenant, errorLineOf, eventually, run, startServer } from '../program.ts'
import { startPostgres, withPostgres } from '../services.ts'
import { startWithStandby } from '../standby.ts'

let servers: Awaited<ReturnType<typeof startWithStandby>>

beforeAll(async () => {
  servers = await startWithStandby()
})

afterAll(() => servers.stop())

const readOnly = 'the database is read-only (a standby, or default_transaction_read_only is on)'
const away = '127.0.0.1:1'

test('of several hosts the primary is used, whichever it is: at the start, and after it is lost', async () => {
  const [primary, standby] = [servers.primary, servers.standby].map(({ url }) => new URL(url).host)
  const urlOf = (...hosts: unknown[]) => ({
    DATABASE_URL: `postgres://postgres@${hosts.join()}/postgres`,
    LOG_LEVEL: 'info',
  })
  // The schema may not have reached the standby yet; the first host is a standby, or away.
  const operator = createOperator(urlOf(standby, primary))
  const tenant = await createTenant(urlOf(primary))
  await operator.one('orgs', 'set-plan', tenant.org, 'team')
  expect((await run(['orgs', 'list'], { settings: urlOf(away, standby, primary) })).status).toBe(0)
  const server = await startServer(urlOf(standby, primary))
  const client = await createClient(server.url)
  const post = async () => (await client.postSignal(tenant.prompt, tenant.key)).status
  expect(await post()).toBe(201)

  await servers.primary.crash('SIGKILL')
  await eventually(async () => [await post(), (await client.call('GET', '/readyz')).body.reason], [503, 'read_only'])
  for (const [hosts, reasons] of [
    [[primary, standby], `${primary} (connect ECONNREFUSED ${primary}), ${standby} (${readOnly})`],
    [[away, primary], `${away} (connect ECONNREFUSED ${away}), ${primary} (connect ECONNREFUSED ${primary})`],
  ] as const) {
    expect(errorLineOf(await run(['serve'], { settings: { ...urlOf(...hosts), LOG_LEVEL: 'error' } }))).toBe(
      `The database at ${hosts.join(', ')} cannot be used: no host is a primary: ${reasons}`,
    )
  }

  await withPostgres(servers.standby.url, (sql) => sql`select pg_promote()`)
  await eventually(post, 201)
  await eventually(async () => (await client.call('GET', '/readyz')).status, 200)
  expect((await run(['orgs', 'list'], { settings: urlOf(primary, standby) })).status).toBe(0)
  expect(await server.stop()).toBe(0)
}, 60_000)

test('an IPv6 address and an escaped name of a database can be used', async () => {
  const server = await startPostgres('listen_addresses=127.0.0.1,::1')
  try {
    await withPostgres(server.url, (sql) => sql`create database "a b/ö"`)
    const { port } = new URL(server.url)
    for (const hosts of [`[::1]:${port}`, `[::1]:${port},${away}`]) {
      const settings = { DATABASE_URL: `postgres://postgres@${hosts}/a%20b%2F%C3%B6` }
      expect(await run(['migrate'], { settings })).toMatchObject({ status: 0 })
    }
  } finally {
    await server.stop()
  }
}, 60_000)
