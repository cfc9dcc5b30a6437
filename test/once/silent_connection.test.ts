import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { openClient } from '../../src/db/client.ts'
import { createDatabase, type TestDatabase } from '../harness.ts'
import { eventually } from '../program.ts'

let database: TestDatabase
let proxy: Server
let opened: Socket[] = []

beforeAll(async () => {
  database = await createDatabase()
  const { hostname, port } = new URL(database.settings.DATABASE_URL as string)
  proxy = createServer((guest) => {
    const server = connect(Number(port), hostname)
    guest.pipe(server).pipe(guest)
    for (const socket of [guest, server]) socket.on('error', () => {})
    opened.push(guest, server)
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
})

afterAll(async () => {
  proxy.close()
  await database.close()
})

/** As when the other end of each connection is gone without a word, and new ones find another. */
function silence(): void {
  for (const socket of opened) socket.unpipe().pause()
  opened = []
}

test('connections that have gone silent are left for new ones: statements, transactions and what is listened to', async () => {
  const url = new URL(database.settings.DATABASE_URL as string)
  url.port = String((proxy.address() as { port: number }).port)
  const db = openClient({ url: url.href, ssl: false }, { queryTimeoutMs: 200, maxConnections: 2 })
  const heard: string[] = []
  let begun = 0
  db.listen(
    'silence',
    (payload) => heard.push(payload),
    () => (begun += 1),
  )
  const ask = () => db.sql<{ n: number }>`select 1 as n`.then(([row]) => row?.n, String)
  const change = () => db.transaction((sql) => sql<{ n: number }>`select 2 as n`).then(([row]) => row?.n, String)
  expect(await Promise.all([ask(), ask(), change(), change()])).toEqual([1, 1, 2, 2])
  await eventually(() => begun, 1)

  silence()
  expect(await Promise.all([ask(), change()])).toEqual(['Error: no answer in time', 'Error: no answer in time'])
  await eventually(ask, 1)
  await eventually(change, 2)
  await eventually(() => begun, 2)
  await db.sql`select pg_notify('silence', 'again')`
  await eventually(() => heard, ['again'])

  silence()
  expect(await change()).toBe('Error: no answer in time')
  await eventually(change, 2)
  await db.close()
})
