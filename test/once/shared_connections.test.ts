import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Answer, type Client, createClient } from '../client.ts'
import { createDatabase, type TestDatabase } from '../harness.ts'
import { createOperator, createTenant, eventually, type Server, startServer } from '../program.ts'
import { entry } from '../service.ts'
import { withAdmin } from '../templates.ts'

let database: TestDatabase
let server: Server
let client: Client
let key: string
let prompt: string

beforeAll(async () => {
  database = await createDatabase()
  server = await startServer(database.settings)
  client = await createClient(server.url)
  ;({ key, prompt } = await createTenant(createOperator(database.settings)))
  // Known before, as nearly every key and prompt is.
  expect((await client.postSignal(prompt, key)).status).toBe(201)
})

afterAll(async () => {
  expect(await server.stop()).toBe(0)
  await database.close()
})

async function expectSignalsTaken(): Promise<void> {
  const signals = Array.from({ length: 5 }, () => client.postSignal(prompt, key))
  expect((await Promise.all(signals)).map(({ status }) => status)).toEqual(Array(5).fill(201))
}

test('pages with filters, which can take long, leave connections to all others', async () => {
  let pages: Promise<Answer>[] = []
  await withAdmin(database.settings.DATABASE_URL as string, (sql) =>
    sql.begin(async (on) => {
      await on`lock table history_entries in access exclusive mode`
      pages = Array.from({ length: 30 }, (_, index) => client.getHistory(prompt, key, `?branch=b${index}`))
      const refused = await Promise.race(pages)
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([500, '1'])
      await expectSignalsTaken()
    }),
  )
  // Two were read and twenty waited; the others were told at once to come again.
  const statuses = (await Promise.all(pages)).map(({ status }) => status)
  expect(statuses.sort()).toEqual([...Array(22).fill(200), ...Array(8).fill(500)])
})

test('those who wait for one history leave connections to all others', async () => {
  let entries: Promise<Answer>[] = []
  await withAdmin(database.settings.DATABASE_URL as string, (sql) =>
    sql.begin(async (on) => {
      await on`select from prompts for update`
      entries = Array.from({ length: 15 }, (_, index) =>
        client.call('POST', `/api/v1/prompts/${prompt}/history`, { key, json: entry({ commit_sha: `c${index}` }) }),
      )
      const waiting = async () => {
        // Otherwise a transaction sees the same all the time.
        await on`select pg_stat_clear_snapshot()`
        const [row] = await on<{ n: number }[]>`
          select count(*)::int as n from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'`
        return row?.n
      }
      await eventually(waiting, 4)
      await expectSignalsTaken()
    }),
  )
  expect((await Promise.all(entries)).map(({ status }) => status)).toEqual(Array(15).fill(201))
})
