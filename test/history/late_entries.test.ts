// Entries that arrive long after their time, and the ranks that keep a deep page as cheap as the first.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Db } from '../../src/db/client.ts'
import { importHistory } from '../../src/history/import.ts'
import { entry, startService, type Tenant, type TestService } from '../service.ts'

let service: TestService

beforeAll(async () => {
  service = await startService()
})

afterAll(() => service.close())

const minute = (number: number) => new Date(Date.UTC(2026, 0, 1) + number * 60_000).toISOString()

async function importEntries({ prompt }: Tenant, minutes: number[]): Promise<void> {
  const { db, clock } = service.services
  async function* lines() {
    for (const number of minutes) yield JSON.stringify({ prompt, ...entry({ created_at: minute(number) }) })
  }
  // An import has no deadline when the command makes it.
  const transaction: Db['transaction'] = (work) => db.transaction(work, { deadline: Number.POSITIVE_INFINITY })
  expect(await importHistory({ ...db, transaction }, clock, lines(), () => {})).toEqual({ recorded: minutes.length })
}

const post = ({ prompt, key }: Tenant, created_at: string) =>
  service.call('POST', `/api/v1/prompts/${prompt}/history`, { key, json: entry({ created_at }) })

const range = (count: number, from = 0) => Array.from({ length: count }, (_, index) => from + index)

test('sixty late entries of one organisation into a long history delay no other organisation', async () => {
  const [long, other] = [await service.createTenant(), await service.createTenant()]
  for (const part of range(30)) await importEntries(long, range(2_000, part * 2_000))
  const late = range(60).map((number) => post(long, minute(-1 - number)))
  const others = range(60).map((number) => post(other, minute(number)))
  expect((await Promise.all(others)).map(({ status }) => status)).toEqual(Array(60).fill(201))
  expect((await Promise.all(late)).map(({ status }) => status)).toEqual(Array(60).fill(201))
  const { body } = await service.getHistory(long.prompt, long.key, '?page=601&limit=100')
  expect(body.pagination.total_count).toBe(60_060)
  const expected = range(60).map((number) => minute(-1 - number))
  expect(body.data.map((one: { created_at: string }) => one.created_at)).toEqual(expected)
})

/** The same numbers in an order that looks random, and is the same in every run. */
function shuffle(numbers: number[]): number[] {
  let state = 1
  const keyed = numbers.map((number) => {
    state = (state * 48_271) % 2_147_483_647
    return [state, number] as const
  })
  return keyed.sort(([a], [b]) => a - b).map(([, number]) => number)
}

test('pages, totals and time ranges stay exact whatever the order of arrival', async () => {
  const tenant = await service.createTenant()
  // Several entries of the same time among them, more of one time than lie between two ranks.
  const minutes = shuffle([...range(1_500), ...range(700).map(() => 700), ...range(300, 400)])
  await importEntries(tenant, minutes.slice(0, 600))
  for (const some of [minutes.slice(600, 900), minutes.slice(900, 1_600)]) {
    await Promise.all(some.map((number) => post(tenant, minute(number))))
  }
  await importEntries(tenant, minutes.slice(1_600))

  const { sql } = service.services.db
  const wrong = await sql`
    select r.rank, n.before
    from history_ranks r
    join prompts p on p.id = r.prompt_id
    cross join lateral (
      select count(*) as before from history_entries h
      where h.prompt_id = r.prompt_id and (h.created_at, h.id) < (r.created_at, r.entry_id)
    ) n
    where p.public_id = ${tenant.prompt} and r.rank <> n.before`
  expect(wrong).toEqual([])
  const ranks = await sql<{ rank: number }>`
    select r.rank from history_ranks r join prompts p on p.id = r.prompt_id
    where p.public_id = ${tenant.prompt} order by r.rank`
  const borders = [0, ...ranks.map(({ rank }) => rank), minutes.length]
  const gaps = borders.slice(1).map((border, index) => border - (borders[index] as number))
  expect(Math.max(...gaps)).toBeLessThanOrEqual(500)

  const all = await sql<{ id: number; created_at: Date }>`
    select h.id, h.created_at from history_entries h join prompts p on p.id = h.prompt_id
    where p.public_id = ${tenant.prompt} order by h.created_at desc, h.id desc`
  const expectPages = async (query: string, expected: { id: number }[]) => {
    const shown: number[] = []
    for (let page = 1; page <= expected.length / 100 + 1; page += 1) {
      const { body } = await service.getHistory(tenant.prompt, tenant.key, `?limit=100&page=${page}${query}`)
      expect(body.pagination.total_count).toBe(expected.length)
      shown.push(...body.data.map((one: { id: number }) => one.id))
    }
    expect(shown).toEqual(expected.map(({ id }) => id))
  }
  await expectPages('', all)
  for (const [since, until] of [
    [300, 1_200],
    [700, 700],
    [0, 5],
    [1_490, 5_000],
    [701, 700],
  ] as const) {
    const between = all.filter(
      ({ created_at }) => created_at >= new Date(minute(since)) && created_at <= new Date(minute(until)),
    )
    await expectPages(`&since=${minute(since)}&until=${minute(until)}`, between)
  }
})
