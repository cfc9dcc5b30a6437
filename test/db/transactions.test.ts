import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Db, Sql } from '../../src/db/client.ts'
import { eventually, rejectionOf } from '../program.ts'
import { openDb } from '../tenant.ts'
import { useDatabase } from '../use.ts'

const queryTimeoutMs = 3_000

let db: Db

afterAll(() => db.close())
const database = useDatabase()

beforeAll(async () => {
  db = await openDb(database.settings, { queryTimeoutMs, maxConnections: 2 })
  await db.sql.script('create table counted (n integer); insert into counted values (0)')
})

const add = (sql: Sql) => sql`update counted set n = n + 1`
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

test('a transaction that takes too long, or waits too long for its turn, is not carried out', async () => {
  const before = await count()
  const free = Promise.withResolvers<void>()
  // One tenant has one of the two connections.
  const permitRequest = { tenant: 1 }
  const slow = db.transaction(async (sql) => {
    await free.promise
    await add(sql)
  }, permitRequest)
  const waiting = Array.from({ length: 3 }, () => db.transaction(add, permitRequest))
  const ended = await Promise.allSettled(waiting)
  free.resolve()
  expect(await rejectionOf(slow)).toContain('could not complete')
  expect(ended.map(({ status }) => status)).toEqual(Array(3).fill('rejected'))
  expect(await count()).toBe(before)
  await db.transaction(add)
  expect(await count()).toBe((before as number) + 1)
})

test('a transaction does not begin once its caller gets an error, nor is it committed then', async () => {
  const before = await count()
  const started: string[] = []
  const late = db.transaction(
    async (sql) => {
      started.push('late')
      await add(sql)
    },
    { deadline: performance.now() },
  )
  expect(await rejectionOf(late)).toContain('could not complete')
  expect(started).toEqual([])
  // Less than the query timeout, which the caller has spent in part on something else.
  const deadline = performance.now() + queryTimeoutMs / 2
  const slow = db.transaction(
    async (sql) => {
      await add(sql)
      await eventually(() => performance.now() > deadline, true)
    },
    { deadline },
  )
  expect(await rejectionOf(slow)).toContain('could not complete')
  expect(await count()).toBe(before)
})

test('an organisation has two heavy reads in flight; one that waited has half of its time left, else it does not start', async () => {
  let started = 0
  const hold = () => {
    started += 1
    return new Promise<void>(() => {})
  }
  for (const tenant of [4, 4, 4, 5]) db.heavyRead(tenant, hold).catch(() => {})
  expect(started).toBe(3)
  const waiting = db.heavyRead(4, hold).catch(({ reason }) => reason)
  expect(await Promise.race([waiting, Bun.sleep(2_250)])).toBe('timeout')
})

test('times of any year are read exactly, however the server is set to write them', async () => {
  await db.sql.script(`do $$ begin
    execute format('alter database %I set timezone = ''Europe/Amsterdam''', current_database());
    execute format('alter database %I set datestyle = ''SQL, DMY''', current_database());
  end $$`)
  const other = await openDb(database.settings, { queryTimeoutMs, maxConnections: 2 })
  const times = ['0001-01-01T00:00:00.000Z', '1850-01-01T12:00:00.000Z', '2026-11-05T06:07:08.120Z']
  const rows = await other.sql<{ at: Date }>`select t::timestamptz as at from unnest(${times}::text[]) t`
  expect(rows.map(({ at }) => at.toISOString())).toEqual(times)
  await other.close()
})

test('an array keeps its nulls, whatever the default of the database is', async () => {
  await db.sql.script(`do $$ begin
    execute format('alter database %I set array_nulls = off', current_database());
  end $$`)
  const other = await openDb(database.settings, { queryTimeoutMs, maxConnections: 2 })
  const texts = ['a', null, 'null']
  expect(await other.sql`select to_json(${texts}::text[]) as texts`).toMatchObject([{ texts }])
  await other.close()
})

test('a statement is read committed, whatever the default of the database is', async () => {
  await db.sql.script(`do $$ begin
    execute format('alter database %I set default_transaction_isolation = serializable', current_database());
  end $$`)
  const other = await openDb(database.settings, { queryTimeoutMs, maxConnections: 2 })
  expect(await other.sql`show transaction_isolation`).toMatchObject([{ transaction_isolation: 'read committed' }])
  await other.close()
})
