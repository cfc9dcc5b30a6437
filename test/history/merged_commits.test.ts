// The commits of a pull request are recorded as its merge, whatever was recorded of them before.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Sql } from '../../src/db/client.ts'
import { importHistory } from '../../src/history/import.ts'
import { countChanges, type PromptEntry, recordEntries } from '../../src/history/record.ts'
import { requirePrompt } from '../../src/prompts/find.ts'
import { entry, startService, type Tenant, type TestService } from '../service.ts'

let service: TestService
let tenant: Tenant
let promptId: number

beforeAll(async () => {
  service = await startService()
  tenant = await service.createTenant()
})

afterAll(() => service.close())

const minute = (number: number) => new Date(Date.UTC(2026, 0, 1) + number * 60_000).toISOString()

const deploy = (number: number, branch_name = 'main'): PromptEntry => ({
  prompt: promptId,
  entry: { ...entry({ commit_sha: `commit ${number}` }), action: 'deployed', branch_name, created_at: minute(number) },
})

const merge = (number: number, covers: number[]): PromptEntry => ({
  ...deploy(number),
  entry: {
    ...deploy(number).entry,
    action: 'pr_merged',
    pr_number: 7,
    pr_url: 'https://github.com/acme/prompts/pull/7',
  },
  covers: covers.map((covered) => `commit ${covered}`),
})

const record = (...entries: PromptEntry[]) => {
  const { db, clock } = service.services
  return db.transaction(async (sql) => countChanges(await recordEntries(sql, clock, entries, 'github')))
}

async function startHistory(): Promise<void> {
  tenant = await service.createTenant()
  promptId = (await requirePrompt(service.services.db.sql, tenant.prompt)).id
}

/** Every entry in short, oldest first, read page by page, with what the first page says. */
async function readStory(): Promise<{ story: string[]; count: number; etag: string | null }> {
  const first = await service.getHistory(tenant.prompt, tenant.key, '?limit=100')
  const { total_pages: pages, total_count: count } = first.body.pagination
  const story: string[] = []
  for (let page = 1; page <= pages; page += 1) {
    const { body } = await service.getHistory(tenant.prompt, tenant.key, `?limit=100&page=${page}`)
    story.push(...body.data.map((one: { action: string; commit_sha: string }) => `${one.action} ${one.commit_sha}`))
  }
  return { story: story.reverse(), count, etag: first.headers.get('etag') }
}

const inEveryOrder = <T>(items: T[]): T[][] =>
  items.length === 0
    ? [[]]
    : items.flatMap((first) => inEveryOrder(items.filter((one) => one !== first)).map((rest) => [first, ...rest]))

test.each(inEveryOrder(['1', '2', 'merge', '4']).map((order) => [order]))(
  'a merge and the deploys that it covers are one entry, in the order %j',
  async (order) => {
    await startHistory()
    for (const which of order) await record(which === 'merge' ? merge(3, [1, 2]) : deploy(Number(which)))
    expect(await readStory()).toMatchObject({ story: ['pr_merged commit 3', 'deployed commit 4'], count: 2 })
  },
)

test('the newest of them becomes the merge, with its id and at the time of merging, and is a new version', async () => {
  await startHistory()
  await record(deploy(1), deploy(2))
  const [before, { etag }] = [await service.getHistory(tenant.prompt, tenant.key), await readStory()]
  expect(await record(merge(3, [1, 2]))).toBe(1)
  const { body } = await service.getHistory(tenant.prompt, tenant.key)
  const { id } = before.body.data[0]
  expect(body.data).toMatchObject([{ id, created_at: minute(3), action: 'pr_merged', commit_sha: 'commit 3' }])
  expect((await readStory()).etag).not.toBe(etag)
})

test('a commit that is covered on one branch is deployed on another', async () => {
  await startHistory()
  await record(merge(3, [1, 2]), deploy(1, 'production'))
  expect((await readStory()).story).toEqual(['deployed commit 1', 'pr_merged commit 3'])
})

test('a merge that is recorded again covers what it did not before', async () => {
  await startHistory()
  await record(merge(3, []), deploy(1))
  expect(await record(merge(3, [1]))).toBe(1)
  expect(await record(merge(3, [1]))).toBe(0)
  expect((await readStory()).story).toEqual(['pr_merged commit 3'])
})

test('pages and totals stay exact when entries deep in a long history are taken up', async () => {
  await startHistory()
  const { db, clock } = service.services
  const numbers = Array.from({ length: 1_300 }, (_, number) => number)
  async function* lines() {
    for (const number of numbers) yield JSON.stringify({ prompt: tenant.prompt, ...deploy(number).entry })
  }
  await importHistory(db, clock, lines(), () => {})
  const covered = [...numbers.slice(240, 260), ...numbers.slice(490, 520), 800, 1_299]
  expect(await record(merge(800, covered))).toBe(1)
  const left = numbers.filter((number) => number === 800 || !covered.includes(number))
  const expected = left.map((number) => `${number === 800 ? 'pr_merged' : 'deployed'} commit ${number}`)
  const { story, count } = await readStory()
  expect([count, story]).toEqual([expected.length, expected])
  const wrong = await db.sql`
    select r.rank
    from history_ranks r
    where r.prompt_id = ${promptId} and r.rank <> (
      select count(*) from history_entries h
      where h.prompt_id = r.prompt_id and (h.created_at, h.id) < (r.created_at, r.entry_id)
    )`
  expect(wrong).toEqual([])
})

test('many merges at once rank a long history anew once, not once for each', async () => {
  await startHistory()
  const { db, clock } = service.services
  const [deploys, merges] = [3_000, 60]
  async function* lines() {
    for (let number = 0; number < deploys; number += 1) {
      yield JSON.stringify({ prompt: tenant.prompt, ...deploy(number).entry })
    }
  }
  await importHistory(db, clock, lines(), () => {})
  const given = Array.from({ length: merges }, (_, number) => {
    const { entry: recorded, ...more } = merge(deploys + number, [number, number + 1_000])
    return { ...more, entry: { ...recorded, pr_number: number + 1 } }
  })
  // The counts of this connection since it last flushed them to the server: only their growth means something.
  const rowsRead = async (sql: Sql) => {
    const [row] = await sql<{ read: number }>`
      select sum(seq_tup_read + idx_tup_fetch)::bigint as read from pg_stat_xact_user_tables
      where relname in ('history_entries', 'history_ranks')`
    return row?.read ?? 0
  }
  const read = await db.transaction(async (sql) => {
    const before = await rowsRead(sql)
    expect(countChanges(await recordEntries(sql, clock, given, 'git'))).toBe(merges)
    return (await rowsRead(sql)) - before
  })
  expect(read).toBeLessThan(2 * deploys)
  const wrong = await db.sql`
    select r.rank, n.before
    from history_ranks r
    cross join lateral (
      select count(*) as before from history_entries h
      where h.prompt_id = r.prompt_id and (h.created_at, h.id) < (r.created_at, r.entry_id)
    ) n
    where r.prompt_id = ${promptId} and r.rank <> n.before`
  expect(wrong).toEqual([])
  expect((await readStory()).count).toBe(deploys - merges)
})
