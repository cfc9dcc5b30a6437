import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { openClient } from '../../src/db/client.ts'
import { createDatabase, type TestDatabase } from '../harness.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createDatabase()
})

afterAll(() => database.close())

test('a query that is asked for as its connection ends does not block those on the next connection', async () => {
  const { hostname, port, username, pathname } = new URL(database.settings.DATABASE_URL as string)
  let current: Socket | undefined
  const socket = () =>
    new Promise<Socket>((resolve) => {
      const opened = connect(Number(port), hostname, () => resolve(opened))
      current = opened
    })
  process.env.PGUSER = username
  process.env.PGDATABASE = pathname.slice(1)
  const db = openClient({ socket }, { queryTimeoutMs: 4_500, maxConnections: 1 })
  await db.sql`select 1`
  const asked = new Promise((resolve) => {
    current?.prependOnceListener('end', () => resolve(db.sql`select 2`.catch((error) => error.code)))
  })
  current?.end()
  await asked
  expect(await db.sql<{ n: number }>`select 3 as n`).toEqual([{ n: 3 }])
  await db.close()
})
