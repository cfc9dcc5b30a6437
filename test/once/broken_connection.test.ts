import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { type Db, openClient } from '../../src/db/client.ts'
import type { Tls } from '../../src/db/tls.ts'
import { requireWebhook } from '../../src/github/receive.ts'
import { findLiveKeys } from '../../src/keys/store.ts'
import { createPromptFinder } from '../../src/prompts/find.ts'
import { eventually } from '../program.ts'
import { createProxy, type TcpProxy } from '../proxy.ts'
import { useDatabase } from '../use.ts'

const database = useDatabase()
let proxy: TcpProxy
let db: Db

beforeAll(async () => {
  proxy = await createProxy(database.settings.DATABASE_URL as string)
})

beforeEach(() => {
  db = openClient({ url: proxy.url, ssl: false }, { queryTimeoutMs: 4_500, maxConnections: 4 })
})

afterEach(() => db.close())

afterAll(() => proxy.close())

/** The sessions of this database that began a transaction and have neither committed nor rolled it back. */
async function countIdleInTransaction(): Promise<number | undefined> {
  const [row] = await db.sql<{ number: number }>`
    select count(*)::int as number from pg_stat_activity
    where datname = current_database() and state like 'idle in transaction%'`
  return row?.number
}

/** A client that gets its sockets from the test, as it does from the embedded engine. */
function openBySocket(openSocket: (port: number, host: string) => Promise<Socket>): Db {
  const { hostname, port, username, pathname } = new URL(database.settings.DATABASE_URL as string)
  process.env.PGUSER = username
  process.env.PGDATABASE = pathname.slice(1)
  const socket = () => openSocket(Number(port), hostname)
  return openClient({ socket }, { queryTimeoutMs: 4_500, maxConnections: 1 })
}

test('a query that is sent as its connection ends does not block those on the next connection', async () => {
  let current: Socket | undefined
  const one = openBySocket(async (port, host) => {
    current = connect(port, host)
    await once(current, 'connect')
    return current
  })
  await one.sql`select 1`
  const asked = new Promise((resolve) => {
    current?.prependOnceListener('end', () => resolve(one.sql`select 2`.catch((error) => error.code)))
  })
  current?.end()
  await asked
  expect(await one.sql<{ n: number }>`select 3 as n`).toEqual([{ n: 3 }])
  await one.close()
})

test('a socket that cannot be opened fails the statement, and the next one opens another', async () => {
  let opened = 0
  const one = openBySocket(async (port, host) => {
    opened += 1
    if (opened === 1) throw new Error('no socket')
    return connect(port, host)
  })
  expect(await one.sql`select 1`.catch((error) => error.message)).toBe('no socket')
  expect(await one.sql<{ n: number }>`select 2 as n`).toEqual([{ n: 2 }])
  await one.close()
})

test.each(['end', 'reset'] as const)('after a cut (%s) in a transaction, the next ones work', async (how) => {
  for (let cut = 0; cut < 5; cut++) {
    const lost = db.transaction(async (sql) => {
      await sql`select 1`
      proxy.cut(how)
      await sql`select 2`
    })
    expect(await lost.then(String, (error) => error.code)).toMatch(/^(CONNECTION_CLOSED|ECONNRESET|EPIPE)$/)
    const next = await Promise.all([1, 2, 3].map((n) => db.transaction((sql) => sql`select ${n}::int as n`)))
    expect(next).toEqual([[{ n: 1 }], [{ n: 2 }], [{ n: 3 }]])
  }
  expect(await countIdleInTransaction()).toBe(0)
})

test('no statement of a transaction whose connection was lost reaches the next connection', async () => {
  await db.sql.script('create table strays (n integer)')
  const replaced = Promise.withResolvers<void>()
  const late: Promise<unknown>[] = []
  const lost = db.transaction(async (sql) => {
    await sql`select 1`
    proxy.cut('end')
    await replaced.promise
    const stray = sql`insert into strays values (1)`.catch((error) => error.code)
    late.push(stray)
    return stray
  })
  expect(await lost.catch((error) => error.code)).toBe('CONNECTION_CLOSED')
  await db.transaction(async (sql) => {
    await sql`select 1`
    replaced.resolve()
    await eventually(() => late.length, 1)
    expect(await late[0]).toBe('CONNECTION_CLOSED')
    await sql`insert into strays values (2)`
  })
  expect(await db.sql`select n from strays`).toEqual([{ n: 2 }])
})

test('no statement of a transaction that has ended reaches the next one on its connection', async () => {
  await db.sql.script('create table leftovers (n integer)')
  let use: ((n: number) => Promise<unknown>) | undefined
  await db.transaction(async (sql) => {
    use = (n) => sql`insert into leftovers values (${n})`
  })
  expect(await use?.(1).catch((error) => error.code)).toBe('TRANSACTION_ENDED')
  expect(await db.sql`select n from leftovers`).toEqual([])
})

test('the client reconnects at longer and longer intervals to a proxy that closes every connection', async () => {
  proxy.setClosing(true)
  const before = proxy.accepted()
  const outcomes = await Promise.allSettled(Array.from({ length: 40 }, () => db.sql`select 1`))
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toEqual([])
  const connects = proxy.accepted() - before
  proxy.setClosing(false)
  // Four connections in 4.5 seconds, each a second apart in the end.
  expect(connects).toBeGreaterThan(4)
  expect(connects).toBeLessThan(80)
  await eventually(() => db.sql`select 1 as n`.catch(String), [{ n: 1 }])
})

test('a statement that has to be prepared again is sent with the same parameters', async () => {
  await db.sql.script(
    `create table plans_change (hash bytea, n integer); insert into plans_change values ('\\x01ff', 1)`,
  )
  const find = () => db.sql`select n from plans_change where hash = ${Buffer.from([1, 255])}`
  // On every connection of the pool.
  for (let time = 0; time < 2; time++) {
    expect(await Promise.all([1, 2, 3, 4].map(find))).toEqual(Array(4).fill([{ n: 1 }]))
    await db.sql.script('alter table plans_change alter column n type bigint')
  }
})

function message(type: string, ...parts: (number | string)[]): Buffer {
  const body = Buffer.concat(
    parts.map((part) => {
      if (typeof part === 'string') return Buffer.from(part)
      const bytes = Buffer.alloc(4)
      bytes.writeInt32BE(part)
      return bytes
    }),
  )
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

test.each([
  ['continues an authentication that was not begun', message('R', 11, 'nonsense')],
  ['requests an unknown way to authenticate', message('R', 99)],
  ['ends an authentication that was not begun', message('R', 12, 'v=none')],
  ['sends a row without a query', Buffer.concat([message('R', 0), message('D', 'xx'), message('Z', 'I')])],
  ['sends what is no message', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')],
  ['accepts TLS and then speaks none', Buffer.from('S nonsense')],
])('a server that %s fails the statement, and nothing else', async (_, bytes) => {
  const ssl = bytes[0] === 0x53 ? { rejectUnauthorized: true } : false
  await expectFailure(ssl, (guest) => guest.end(bytes))
})

test('an authority that is no certificate fails the statement, and nothing else', async () => {
  await expectFailure({ rejectUnauthorized: true, ca: 'no certificate' }, (guest) => guest.write('S'))
})

/** Expects a statement to fail on a server that replies in this way to the first bytes of each connection. */
async function expectFailure(ssl: Tls, reply: (guest: Socket) => void): Promise<void> {
  const server = createServer((guest) => {
    guest.on('error', () => {})
    guest.once('data', () => reply(guest))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `postgres://user:word@127.0.0.1:${(server.address() as { port: number }).port}/db`
  const odd = openClient({ url, ssl }, { queryTimeoutMs: 300, maxConnections: 1 })
  const outcome = odd.sql`select 1`.then(
    () => 'answered',
    () => 'failed',
  )
  expect(await outcome).toBe('failed')
  await odd.close()
  server.close()
}

// Results of the database that belong to other queries: none of them gives access to anything.

const answering = (row: object) => ({ sql: async () => [row] }) as unknown as Db

test('the webhook of another organisation authenticates no delivery', async () => {
  const db = answering({ org: 'org_other', organisationId: 2, secret: 'theirs' })
  expect(
    await requireWebhook(db, 'org_mine').then(
      () => 'accepted',
      () => 'rejected',
    ),
  ).toBe('rejected')
})

test('another key authenticates no caller', async () => {
  const { sql } = answering({ hash: '02', id: 2, organisationId: 2, org: 'org_other', key: 'key_other' })
  expect((await findLiveKeys(sql, ['01'])).get('01')).toBeUndefined()
})

test.each([
  ['another prompt', { id: 2, organisationId: 1, publicId: 'pmt_other' }],
  ['the prompt of another organisation', { id: 2, organisationId: 2, publicId: 'pmt_mine' }],
])('%s is not found', async (_, row) => {
  const found = createPromptFinder(answering(row)).find(1, 'pmt_mine')
  expect(await Promise.resolve(found).catch((error) => error.code)).toBe('not_found')
})
