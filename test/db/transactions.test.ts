import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readConfig } from '../../src/config.ts'
import type { Db } from '../../src/db/client.ts'
import { openDatabase } from '../../src/db/open.ts'
import { migrations } from '../../src/platform.ts'
import { createDatabase, type TestDatabase } from '../harness.ts'

let database: TestDatabase
let db: Db

beforeAll(async () => {
  database = await createDatabase()
  const options = { migrations, queryTimeoutMs: 4_500, maxConnections: 2, whenInUse: 'refuse' as const }
  db = await openDatabase(readConfig({}, database.settings), options)
  await db.sql.script('create table counted (n integer); insert into counted values (0)')
})

afterAll(async () => {
  await db.close()
  await database.close()
})

const count = async () => (await db.sql<{ n: number }>`select n from counted`)[0]?.n

test('many transactions beside many statements are each whole, and all of them committed', async () => {
  const statements = () => Array.from({ length: 20 }, () => db.sql`select pg_sleep(0.001)`)
  const transactions = Array.from({ length: 30 }, (_, index) =>
    db.transaction(async (sql) => {
      const [row] = await sql<{ n: number }>`select n from counted for update`
      await sql`update counted set n = ${(row?.n ?? 0) + 1}`
      if (index % 3 === 0) throw new Error('rolled back')
    }),
  )
  const ended = await Promise.allSettled([...statements(), ...transactions, ...statements()])
  expect(ended.filter(({ status }) => status === 'rejected')).toHaveLength(10)
  expect(await count()).toBe(20)
})
