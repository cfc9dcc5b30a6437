import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { type Db, openClient } from '../../src/db/client.ts'
import { eventually } from '../program.ts'
import { createProxy, type TcpProxy } from '../proxy.ts'
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
