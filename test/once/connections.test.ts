import { afterAll, beforeAll, expect, onTestFinished, test } from 'bun:test'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { type Db, openClient } from '../../src/db/client.ts'
import { openPool } from '../../src/db/driver.ts'
import type { Tls } from '../../src/db/tls.ts'
import { requireWebhook } from '../../src/github/receive.ts'
import { findLiveKeys } from '../../src/keys/store.ts'
import { createPromptFinder } from '../../src/prompts/find.ts'
import { eventually, rejectionOf } from '../program.ts'
import { createProxy, type TcpProxy } from '../proxy.ts'
import { useDatabase } from '../use.ts'

const database = useDatabase()
let proxy: TcpProxy

beforeAll(async () => {
  proxy = await createProxy(database.settings.DATABASE_URL as string)
})

afterAll(() => proxy.close())

/** A client until the end of the test; of the proxy unless it says otherwise. */
function open(queryTimeoutMs: number, maxConnections: number, more: object = {}): Db {
  const db = openClient({ url: proxy.url, ssl: false, ...more }, { queryTimeoutMs, maxConnections })
  onTestFinished(() => db.close())
  return db
}

/** The sessions of this database that began a transaction and have neither committed nor rolled it back. */
async function countIdleInTransaction(db: Db): Promise<number | undefined> {
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
  const db = openClient(
    { socket: () => openSocket(Number(port), hostname) },
    { queryTimeoutMs: 4_500, maxConnections: 1 },
  )
  onTestFinished(() => db.close())
  return db
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
})

test.each(['end', 'reset'] as const)('after a cut (%s) in a transaction, the next ones work', async (how) => {
  const db = open(4_500, 4)
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
  expect(await countIdleInTransaction(db)).toBe(0)
})

test('no statement of a transaction whose connection was lost reaches the next connection', async () => {
  const db = open(4_500, 4)
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
  const db = open(4_500, 4)
  await db.sql.script('create table leftovers (n integer)')
  let use: ((n: number) => Promise<unknown>) | undefined
  await db.transaction(async (sql) => {
    use = (n) => sql`insert into leftovers values (${n})`
  })
  expect(await use?.(1).catch((error) => error.code)).toBe('TRANSACTION_ENDED')
  expect(await db.sql`select n from leftovers`).toEqual([])
})

test('the client reconnects at longer and longer intervals to a proxy that closes every connection', async () => {
  const db = open(4_500, 4)
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
  const db = open(4_500, 4)
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

/** How many sessions answer at the same time; none while one of them takes longer than its deadline. */
const countSessions = (db: Db) =>
  Promise.all(
    [1, 2].map(() => db.sql<{ pid: number }>`select pg_backend_pid() as pid, pg_sleep(0.05)`.then(([row]) => row?.pid)),
  ).then(
    (pids) => new Set(pids).size,
    () => 0,
  )

test('connections that have gone silent are replaced: those of statements and of transactions', async () => {
  const db = open(500, 2)
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
})

test('the primary is looked for again when silent connections are replaced, not once they are closed', async () => {
  const events: string[] = []
  const { hostname, port } = new URL(proxy.url)
  const primary = {
    hosts: 'proxy',
    connect: async () => connect(Number(port), hostname),
    forget: () => void events.push('forgotten'),
  }
  const db = open(500, 1, { primary })
  db.onConnectionLost(() => events.push('lost'))
  await eventually(() => db.sql`select 1 as n`.catch(String), [{ n: 1 }])
  proxy.silence()
  expect(await db.sql`select 1`.catch(String)).toBe('Error: no answer in time')
  await eventually(() => events.slice(0, 2), ['forgotten', 'lost'])
})

test('connections that were closed as they were opened are all used again', async () => {
  const db = open(500, 2)
  proxy.setClosing(true)
  const failed = await Promise.all([1, 2, 3, 4].map(() => db.sql`select 1`.then(() => 'answered', String)))
  expect(failed).toEqual(Array(4).fill('Error: no answer in time'))
  proxy.setClosing(false)
  await eventually(() => countSessions(db), 2)
})

test('a statement that waits for a lock beyond its deadline costs no connection', async () => {
  // Its own: the driver may still be giving up connections of other tests, for which it opens further ones.
  const unshared = await createProxy(database.settings.DATABASE_URL as string)
  onTestFinished(() => unshared.close())
  const db = open(500, 2, { url: unshared.url })
  await eventually(() => countSessions(db), 2)
  const before = unshared.accepted()
  // More than there are connections: some are sent only as their own time is nearly up.
  const slow = await Promise.allSettled([1, 2, 3, 4].map(() => db.sql`select pg_sleep(1)`))
  expect(slow.map(({ status }) => status)).toEqual(Array(4).fill('rejected'))
  // Longer than a connection may be silent.
  for (const until = performance.now() + 2_500; performance.now() < until; ) {
    await db.sql`select pg_sleep(0.05)`.catch(() => {})
  }
  expect(await db.sql`select 1 as n`).toEqual([{ n: 1 }])
  expect(unshared.accepted()).toBe(before)
})

test('a statement on a connection that is given up does not go on in the server', async () => {
  const driver = openPool({ url: proxy.url, ssl: false }, { queryTimeoutMs: 0 }, 1, 0)
  const slow = driver`select pg_sleep(600)`.catch(({ code }) => code)
  const observer = open(4_500, 1)
  const countSlow = async () => {
    const rows = await observer.sql`
      select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`
    return rows.length
  }
  await eventually(countSlow, 1)
  await driver.end({ timeout: 0 })
  expect(await slow).toBe('CONNECTION_DESTROYED')
  await eventually(countSlow, 0)
})

test('no statement waits behind a slow one while another connection is free', async () => {
  const db = open(4_500, 2)
  const order: string[] = []
  const sleep = (name: string, seconds: number) =>
    db.sql`select pg_sleep(${seconds}::float8)`.then(() => order.push(name))
  // Known to both connections, and so sent without a question first.
  await Promise.all([sleep('', 0.05), sleep('', 0.05)])
  await Promise.all([sleep('slow', 2), sleep('quick', 0.1), sleep('first behind', 0), sleep('second behind', 0)])
  expect(order.slice(2)).toEqual(['quick', 'first behind', 'second behind', 'slow'])
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
  onTestFinished(() => void server.close())
  const outcome = open(300, 1, { url, ssl }).sql`select 1`
  expect(
    await outcome.then(
      () => 'answered',
      () => 'failed',
    ),
  ).toBe('failed')
}

// Results of the database that belong to other queries: none of them gives access to anything.

const answering = (row: object) => ({ sql: async () => [row] }) as unknown as Db

test('the webhook of another organisation authenticates no delivery', async () => {
  const db = answering({ org: 'org_other', organisationId: 2, secret: 'theirs' })
  expect(await rejectionOf(requireWebhook(db, 'org_mine'))).toBe('response does not match request')
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
