// The counts of signals, with those that came after the watermark, equal the signals that there are.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Sql } from '../../src/db/client.ts'
import { monthOf } from '../../src/lib/months.ts'
import { writeSignals } from '../../src/signals/store.ts'
import { createSignalRollup } from '../../src/stats/rollup.ts'
import { selectPending } from '../../src/stats/store.ts'
import { engine } from '../harness.ts'
import { startService, type TestService } from '../service.ts'

let service: TestService

beforeAll(async () => {
  service = await startService()
})

afterAll(() => service.close())

const now = new Date('2026-11-14T12:34:56.789Z')
const commits = [null, 'c0ffee00', 'C0FFEE00', 'deadbeef01', 'x']

async function createPrompt(): Promise<{ id: number; organisationId: number; key: string; prompt: string }> {
  const { prompt, key } = await service.createTenant(1_000_000)
  const [row] = await service.services.db.sql<{ id: number; organisationId: number }>`
    select id, organisation_id as "organisationId" from prompts where public_id = ${prompt}`
  return { ...(row as { id: number; organisationId: number }), key, prompt }
}

type Draft = { minutesAgo: number; isPositive: boolean; commit: number }

const write = (sql: Sql, { id, organisationId }: { id: number; organisationId: number }, drafts: Draft[]) =>
  writeSignals(
    sql,
    drafts.map(({ minutesAgo, isPositive, commit }) => ({
      organisationId,
      promptId: id,
      value: isPositive ? 'positive' : 'negative',
      metadata: commits[commit] ? JSON.stringify({ commit_sha: commits[commit] }) : null,
      createdAt: new Date(now.getTime() - minutesAgo * 60_000),
      month: monthOf(now),
      idempotencyKey: null,
      browserKeyId: null,
    })),
  )

const bounds = ['-infinity', '2026-11-07T00:00:00Z', '2026-11-10T10:07:00Z', '2026-11-10T10:08:00Z', 'infinity']

/** What the function finds and the counts by commit have, and what the rows say. */
async function compare(sql: Sql, promptId: number) {
  const [row] = await sql<{ counted: string; there: string }>`
    select
      (
        select json_build_array(
          (select json_agg(c order by c.number) from count_signals_between(${promptId}, b.bounds) c),
          (
            select json_agg(c order by c.commit_sha, c.minutes, c.start)
            from (
              select commit_sha, minutes, start, positive, negative
              from signal_commit_counts where prompt_id = ${promptId}
            ) c
          )
        )
      )::text as counted,
      (
        select json_build_array(
          (
            select json_agg(c order by c.number)
            from (
              select width_bucket(created_at, b.bounds) as number,
                count(*) filter (where value = 'positive') as positive,
                count(*) filter (where value = 'negative') as negative
              from signals where prompt_id = ${promptId} group by 1
            ) c
          ),
          (
            select json_agg(c order by c.commit_sha, c.minutes, c.start)
            from (
              select (metadata ->> 'commit_sha') collate "C" as commit_sha, w.minutes,
                date_bin(make_interval(mins => w.minutes), created_at, '2000-01-01T00:00:00Z') as start,
                count(*) filter (where value = 'positive') as positive,
                count(*) filter (where value = 'negative') as negative
              from signals
              join signal_watermarks m using (prompt_id)
              cross join (values (15), (1440)) w (minutes)
              where prompt_id = ${promptId} and id <= m.counted_to and metadata is not null
              group by 1, 2, 3
            ) c
          )
        )
      )::text as there
    from (select ${bounds}::text[]::timestamptz[] as bounds) b`
  return row as { counted: string; there: string }
}

const drafts = fc.array(
  fc.record({
    minutesAgo: fc.integer({ min: 0, max: 20_000 }),
    isPositive: fc.boolean(),
    commit: fc.integer({ min: 0, max: commits.length - 1 }),
  }),
  { minLength: 1, maxLength: 30 },
)

const steps = fc.array(
  fc.oneof(
    drafts.map((signals) => ({ kind: 'write' as const, signals })),
    fc.integer({ min: 1, max: 20 }).map((rows) => ({ kind: 'count' as const, rows })),
    fc.array(fc.nat(), { minLength: 1, maxLength: 10 }).map((picks) => ({ kind: 'erase' as const, picks })),
  ),
  { minLength: 1, maxLength: 15 },
)

test('the sum equals the rows after any order of writing, counting and erasing', async () => {
  const { sql } = service.services.db
  await fc.assert(
    fc.asyncProperty(steps, async (given) => {
      const prompt = await createPrompt()
      let ids: number[] = []
      for (const step of given) {
        if (step.kind === 'write') ids.push(...(await write(sql, prompt, step.signals)).map(({ id }) => id as number))
        if (step.kind === 'count') await sql`select roll_up_signals(${prompt.id}, ${step.rows})`
        if (step.kind === 'erase' && ids.length > 0) {
          const chosen = [...new Set(step.picks.map((pick) => ids[pick % ids.length] as number))]
          const [row] = await sql`
            select erase_signals(${prompt.id}, ${[...chosen, 999_999_999].map(String)}::text[]::bigint[]) as erased`
          expect(row).toEqual({ erased: chosen.length })
          ids = ids.filter((id) => !chosen.includes(id))
        }
        const { counted, there } = await compare(sql, prompt.id)
        expect(counted).toBe(there)
      }
    }),
    { numRuns: engine === 'postgres' ? 60 : 25 },
  )
})

test('a prompt whose signals are all erased has no counts left', async () => {
  const { sql } = service.services.db
  const prompt = await createPrompt()
  await write(sql, prompt, [
    { minutesAgo: 0, isPositive: true, commit: 1 },
    { minutesAgo: 2_000, isPositive: false, commit: 0 },
  ])
  await sql`select roll_up_signals(${prompt.id}, 100)`
  await sql`select erase_signals(${prompt.id}, array(select id from signals where prompt_id = ${prompt.id}))`
  const left = await sql`
    select 1 from signal_counts where prompt_id = ${prompt.id}
    union all select 1 from signal_commit_counts where prompt_id = ${prompt.id}`
  expect(left).toEqual([])
})

test('an erased signal takes its idempotency key along, and the month stays as it was used', async () => {
  const { sql } = service.services.db
  const { id: promptId, prompt, key } = await createPrompt()
  const post = () =>
    service.call('POST', `/api/v1/prompts/${prompt}/signals`, {
      key,
      json: { value: 'positive' },
      headers: { 'idempotency-key': 'once' },
    })
  const first = (await post()).body.data.id
  await sql`select erase_signals(${promptId}, array[${first}::bigint])`
  const again = await post()
  expect([again.status, again.body.data.id > first, again.headers.get('idempotent-replayed')]).toEqual([
    201,
    true,
    null,
  ])
  expect((await service.call('GET', '/api/v1/usage', { key })).body.data).toMatchObject({
    used: 2,
    prompts: [{ prompt, total: 1 }],
  })
})

test('the signals of another prompt are not erased', async () => {
  const { sql } = service.services.db
  const [one, other] = [await createPrompt(), await createPrompt()]
  const [signal] = await write(sql, one, [{ minutesAgo: 0, isPositive: true, commit: 0 }])
  const [row] = await sql`select erase_signals(${other.id}, array[${String(signal?.id)}::text::bigint]) as erased`
  expect(row).toEqual({ erased: 0 })
})

// The embedded engine carries out one transaction after the other.
if (engine === 'postgres') {
  test('a first count waits for an erasure, and does not count what that takes away', async () => {
    const { db } = service.services
    const prompt = await createPrompt()
    const [first] = await write(db.sql, prompt, [
      { minutesAgo: 1, isPositive: true, commit: 1 },
      { minutesAgo: 0, isPositive: false, commit: 0 },
    ])
    let counting: Promise<unknown> | undefined
    await db.transaction(async (sql) => {
      await sql`select erase_signals(${prompt.id}, array[${String(first?.id)}::text::bigint])`
      counting = db.sql`select roll_up_signals(${prompt.id}, 100)`
      counting.catch(() => {})
      // Until the count waits for the lock. Within this transaction the first look would be all that is ever seen.
      for (let waiting = 0; waiting === 0; ) {
        const [row] = await db.sql<{ waiting: number }>`
        select count(*)::integer as waiting from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%roll_up_signals(%' and pid <> pg_backend_pid()`
        waiting = row?.waiting ?? 0
      }
    })
    await counting
    const { counted, there } = await compare(db.sql, prompt.id)
    expect(counted).toBe(there)
  })
}

test('many replicas may count at once, while signals arrive', async () => {
  const { db } = service.services
  const prompt = await createPrompt()
  const rollups = Array.from({ length: 3 }, () => createSignalRollup(db))
  for (let round = 0; round < 4; round += 1) {
    await Promise.all([
      write(
        db.sql,
        prompt,
        Array.from({ length: 400 }, (_, n) => ({ minutesAgo: n * 7, isPositive: n % 3 > 0, commit: n % 5 })),
      ),
      ...rollups.map(async (rollup) => {
        for (let n = 0; n < 1_000; n += 1) rollup.recorded(prompt.id)
        await rollup.rollUpPending()
      }),
      compare(db.sql, prompt.id).then(({ counted, there }) => expect(counted).toBe(there)),
    ])
  }
  const { counted, there } = await compare(db.sql, prompt.id)
  expect(counted).toBe(there)
})

/** Adds signals without metadata that are not counted yet. */
const addPlain = (promptId: number, organisationId: number, number: number) =>
  service.services.db.sql`
    insert into signals (organisation_id, prompt_id, value, created_at)
    select ${organisationId}, ${promptId}, 'positive', ${now}::timestamptz from generate_series(1, ${number}::integer)`

const isBehind = async (promptId: number, rows: number): Promise<boolean> =>
  (await selectPending(service.services.db.sql, [promptId], rows)).length > 0

test.each([
  ['stats', 3_500, (prompt: string) => `/api/v1/prompts/${prompt}/stats`],
  ['usage', 3_500, () => '/api/v1/usage'],
  // With thousands of prompts, these would be too many to add up.
  ['usage', 150, () => '/api/v1/usage'],
  ['impact of all prompts', 150, () => '/api/v1/impact'],
])('who reads the %s shortens a tail of %d signals that are not counted yet', async (_, tail, pathTo) => {
  const { id, organisationId, prompt, key } = await createPrompt()
  await addPlain(id, organisationId, tail)
  expect(await isBehind(id, tail - 1)).toBe(true)
  expect((await service.call('GET', pathTo(prompt), { key })).status).toBe(200)
  expect(await isBehind(id, 0)).toBe(false)
  const { counted, there } = await compare(service.services.db.sql, id)
  expect(counted).toBe(there)
})

test('a reader who cannot count a tail in time is turned away, and the rounds count the rest of it', async () => {
  const { db } = service.services
  const { id, organisationId } = await createPrompt()
  await addPlain(id, organisationId, 4_500)
  const rollup = createSignalRollup(db, { patienceMs: 0 })
  const rejection = await rollup.catchUp(id).catch((error: unknown) => error)
  expect(rejection).toMatchObject({ code: 'internal_error', headers: { 'retry-after': '1' } })
  await rollup.rollUpPending()
  expect(await isBehind(id, 0)).toBe(false)
  await rollup.catchUp(id)
})

test('a prompt that is far behind is counted in one round until it is not', async () => {
  const { db } = service.services
  const { id, organisationId } = await createPrompt()
  await addPlain(id, organisationId, 12_500)
  const rollup = createSignalRollup(db)
  for (let n = 0; n < 111_500; n += 1) rollup.recorded(id)
  await Promise.all([rollup.rollUpPending(), rollup.rollUpPending()])
  expect([await isBehind(id, 499), await isBehind(id, 500)]).toEqual([true, false])
})

test('prompts with few new signals are counted by the rounds too', async () => {
  const { db } = service.services
  const { id, organisationId } = await createPrompt()
  await addPlain(id, organisationId, 100)
  const rollup = createSignalRollup(db)
  for (let n = 0; n < 99; n += 1) rollup.recorded(id)
  await rollup.rollUpPending()
  expect(await isBehind(id, 99)).toBe(true)
  rollup.recorded(id)
  await rollup.rollUpPending()
  expect(await isBehind(id, 0)).toBe(false)
})
