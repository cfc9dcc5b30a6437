import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import type postgres from 'postgres'
import { type Embedded, openEmbedded } from '../../src/db/embedded.ts'
import { createFolder, rejectionOf } from '../program.ts'
import { openDriver } from './embedded_driver.ts'

const root = createFolder()
let embedded: Embedded
let sql: postgres.Sql

beforeAll(async () => {
  embedded = await openEmbedded(join(root, 'main'))
  sql = openDriver(embedded)
})

afterAll(async () => {
  await sql.end()
  await embedded.close()
})

test('returns the results of prepared, plain and scripted queries with the types of a server', async () => {
  const [row] = await sql`select ${'é'}::text as text, ${['a', 'b "c"', 'NULL', '']}::text[] as list, ${7}::int as int`
  expect({ ...row }).toEqual({ text: 'é', list: ['a', 'b "c"', 'NULL', ''], int: 7 })
  const script = await sql.unsafe<{ n: number }[][]>('select 1 as n; select 2 as n')
  expect(script.map((rows) => rows[0]?.n)).toEqual([1, 2])
  const [settings] = await sql`select current_setting('TimeZone') as zone, current_setting('fsync') as fsync`
  expect({ ...settings }).toEqual({ zone: 'UTC', fsync: 'on' })
})

test('carries parameters and results of several megabytes', async () => {
  const big = 'ü'.repeat(3_000_000)
  const rows = await sql`select ${big}::text || g as text from generate_series(1, 3) g`
  expect(rows.map((row) => row.text === big + (rows.indexOf(row) + 1))).toEqual([true, true, true])
})

test('rejects what fails and keeps every other query of the pipeline', async () => {
  const answers = await Promise.allSettled([0, 1, 2, 0, 4].map((n) => sql`select 4 / ${n}::int as n`))
  const found = answers.map((a) => (a.status === 'fulfilled' ? a.value[0]?.n : a.reason.code))
  expect(found).toEqual(['22012', 4, 2, '22012', 1])
  expect(await rejectionOf(sql`select ${'x'}::int`)).toContain('invalid input syntax')
  expect(await rejectionOf(sql.unsafe('select 1; select nothing'))).toContain('does not exist')
  expect((await sql`select 1 as n`)[0]?.n).toBe(1)
})

test('passes on notices', async () => {
  const notices: string[] = []
  const other = openDriver(embedded, { onnotice: (notice) => notices.push(notice.message ?? '') })
  await other`do $$ begin raise notice 'look'; end $$`
  expect(notices).toEqual(['look'])
  await other.end()
})

test('applies the settings of a connection, and rejects it for one that does not exist', async () => {
  const asking = openDriver(embedded, { connection: { application_name: `o'clock` } })
  expect((await asking`show application_name`)[0]?.application_name).toBe(`o'clock`)
  await asking.end()
  const wrong = openDriver(embedded, { connection: { no_such_setting: 'x' } as Record<string, string> })
  expect(await rejectionOf(wrong`select 1`)).toContain('no_such_setting')
  await wrong.end()
})

test('leaves nothing of a closed connection to the next one', async () => {
  const engine = await openEmbedded(join(root, 'reconnect'))
  const first = openDriver(engine)
  const socket = Promise.withResolvers<Duplex>()
  const torn = openDriver({
    connect: () => {
      const duplex = engine.connect()
      socket.resolve(duplex)
      return duplex
    },
  })
  await first`create table rows (n int)`
  await torn`select ${1}::int`
  await torn.unsafe('begin; insert into rows values (1)')
  const waiting = first`select n from rows`.execute()
  ;(await socket.promise).destroy()
  expect([...(await waiting)]).toEqual([])
  await first.end()
  const fresh = openDriver(engine, { prepare: false, fetch_types: false })
  const left = await fresh`select name from pg_prepared_statements where name <> ''`
  expect([...left]).toEqual([])
  await fresh.end()
  await engine.close()
})

test("drops a closed connection's statements while another stays open", async () => {
  const count = async () => (await sql`select count(*)::int as n from pg_prepared_statements`)[0]?.n
  await count()
  const before = await count()
  const other = openDriver(embedded)
  await other`select ${'one of mine'}::text`
  expect(await count()).toBeGreaterThan(before)
  await other.end()
  expect(await count()).toBe(before)
})

test('puts together messages that arrive in pieces', async () => {
  const split = openDriver({
    connect: () => {
      const duplex = embedded.connect()
      const write = duplex.write.bind(duplex)
      duplex.write = ((bytes: Buffer) =>
        [...bytes].map((byte) => write(Buffer.from([byte]))).at(-1)) as typeof duplex.write
      return duplex
    },
  })
  expect((await split`select ${'whole'}::text as text`)[0]?.text).toBe('whole')
  await split.end()
})

test('checkpoints and vacuums only between the transactions of others', async () => {
  await sql`create table busy as select g as n from generate_series(1, 5000) g`
  const order: string[] = []
  let upkeep: Promise<unknown> | undefined
  await sql.begin(async (tx) => {
    await tx`delete from busy where n > 10`
    upkeep = Promise.all([embedded.checkpoint(), embedded.maintain()]).then(() => order.push('upkeep'))
    for (let i = 0; i < 20; i++) await tx`select pg_sleep(0)`
    order.push('transaction')
  })
  await upkeep
  expect(order).toEqual(['transaction', 'upkeep'])
})

test('vacuums the tables that changed much, and checkpoints after much was written', async () => {
  await sql`create table churned as select g as n, repeat('x', 500) as filler from generate_series(1, 40000) g`
  const redo = async () => (await sql`select redo_lsn::text as at from pg_control_checkpoint()`)[0]?.at
  const vacuumed = async () =>
    (await sql`select last_vacuum is not null as done from pg_stat_user_tables where relname = 'churned'`)[0]?.done
  const before = await redo()
  expect(await vacuumed()).toBe(false)
  await embedded.maintain()
  expect(await vacuumed()).toBe(true)
  expect(await redo()).not.toBe(before)
  const settled = await redo()
  await embedded.maintain()
  expect(await redo()).toBe(settled)
})

test('a statement that waits for the backend longer than its timeout fails, and is not run later', async () => {
  await sql`create table waited (n int)`
  const impatient = ['statements', 'plain', 'begin'].map(() =>
    openDriver(embedded, { connection: { statement_timeout: 100 } }),
  )
  const [prepared, plain, beginning] = impatient as [postgres.Sql, postgres.Sql, postgres.Sql]
  for (const driver of impatient) await driver`select 1`
  const failures = await sql.begin(async () =>
    Promise.all([
      rejectionOf(prepared`insert into waited values (${1})`),
      rejectionOf(plain`insert into waited values (2)`.simple()),
      rejectionOf(beginning.begin((tx) => tx`insert into waited values (3)`)),
    ]),
  )
  expect(new Set(failures)).toEqual(new Set(['canceling statement due to statement timeout']))
  // The connections go on, with the very statements that failed.
  await prepared`insert into waited values (${4})`
  await plain`insert into waited values (5)`.simple()
  await beginning.begin((tx) => tx`insert into waited values (6)`)
  expect((await sql`select n from waited order by n`).map(({ n }) => n)).toEqual([4, 5, 6])
  for (const driver of impatient) await driver.end()
})
