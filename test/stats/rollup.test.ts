import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Sql } from '../../src/db/client.ts'
import { selectSortedPrompts } from '../../src/impact/store_lists.ts'
import { monthOf } from '../../src/lib/months.ts'
import { type OwnedPrompt, type Prompt, requirePrompt } from '../../src/prompts/find.ts'
import { withdraw } from '../../src/signals/erase.ts'
import { writeSignals } from '../../src/signals/store.ts'
import { eraseBefore } from '../../src/signals/store_bulk.ts'
import { createSignalRollup } from '../../src/stats/rollup.ts'
import { rollUpSignals, selectMonthCounts, selectPromptsBehind, selectSpanCounts } from '../../src/stats/store.ts'
import { engine } from '../harness.ts'
import { eventually, untilLocked } from '../program.ts'
import { useService } from '../use.ts'

const service = useService()

const now = new Date('2026-11-14T12:34:56.789Z')
const commits = [null, 'c0ffee00', 'C0FFEE00', 'deadbeef01', 'x']

async function createPrompt() {
  const tenant = await service.createTenant(1_000_000)
  return { ...(await requirePrompt(service.services.db.sql, tenant.prompt)), ...tenant }
}

type Draft = { minutesAgo: number; isPositive: boolean; commit: number }

const write = (sql: Sql, prompt: Prompt, drafts: Draft[]) =>
  writeSignals(
    sql,
    drafts.map(({ minutesAgo, isPositive, commit }) => ({
      prompt,
      value: isPositive ? 'positive' : 'negative',
      metadata: commits[commit] ? JSON.stringify({ commit_sha: commits[commit] }) : null,
      createdAt: new Date(now.getTime() - minutesAgo * 60_000),
      month: monthOf(now),
      idempotencyKey: null,
      browserKey: null,
    })),
  )

const erase = async (sql: Sql, prompt: Prompt, ids: number[]) => {
  const [row] = await sql<{ erased: number }>`
    select erase_signals(${prompt.organisationId}, ${prompt.id}, ${ids.map(String)}::text[]::bigint[]) as erased`
  return row?.erased
}

type Count = { key: string; positive: number; negative: number }

function addUp(counts: Count[]): Count[] {
  const sums = new Map<string, Count>()
  for (const { key, positive, negative } of counts) {
    const sum = sums.get(key) ?? { key, positive: 0, negative: 0 }
    sums.set(key, { key, positive: sum.positive + positive, negative: sum.negative + negative })
  }
  return [...sums.values()].toSorted((a, b) => (a.key < b.key ? -1 : 1))
}

const bounds = ['2026-10-01', '2026-11-07', '2026-11-10T10:07:00Z', '2026-11-10T10:08:00Z', '2026-12-01'].map(
  (text) => new Date(text),
)

/** Expects the rollups, and the counts between bounds, to be those of the rows. */
const expectExact = ({ id: promptId, organisationId }: Prompt) =>
  service.services.db.transaction(
    async (sql) => {
      const rows = await sql<{ value: string; at: Date; commit: string | null; isRolledUp: boolean }>`
        select s.value, s.created_at as at, lower(s.metadata ->> 'commit_sha') as commit,
          s.id <= coalesce(w.last_rolled_up_id, 0) as "isRolledUp"
        from signals s left join signal_watermarks w using (prompt_id)
        where s.prompt_id = ${promptId}`
      const countOf = (key: string, { value }: { value: string }): Count => ({
        key,
        positive: value === 'positive' ? 1 : 0,
        negative: value === 'negative' ? 1 : 0,
      })
      const rolledUp = rows.filter(({ isRolledUp }) => isRolledUp)
      const expected = rolledUp.flatMap((row) =>
        [15, 1440].flatMap((minutes) => {
          const start = Math.floor(row.at.getTime() / 60_000 / minutes) * minutes
          return [null, ...(row.commit ? [row.commit] : [])].map((one) => countOf(`${minutes} ${start} ${one}`, row))
        }),
      )
      const counts = await sql<Count>`
        select concat(minutes, ' ', extract(epoch from start)::bigint / 60, ' ', commit) as key, positive, negative
        from (
          select minutes, start, 'null' as commit, positive, negative from signal_counts where prompt_id = ${promptId}
          union all
          select minutes, start, commit_sha, positive, negative from signal_commit_counts where prompt_id = ${promptId}
        ) c`
      expect(addUp(counts)).toEqual(addUp(expected))

      const between = await selectSpanCounts(sql, organisationId, [promptId], bounds)
      const numberOf = ({ at }: { at: Date }) => bounds.filter((bound) => bound <= at).length
      expect(addUp(between.map(({ number, promptId: _, ...count }) => ({ key: String(number), ...count })))).toEqual(
        addUp(rows.map((row) => countOf(String(numberOf(row)), row))),
      )
    },
    {},
    'repeatable read',
  )

const drafts = fc.array(
  fc.record({
    minutesAgo: fc.integer({ min: 0, max: 20_000 }),
    isPositive: fc.boolean(),
    commit: fc.integer({ min: 0, max: commits.length - 1 }),
  }),
  { minLength: 1, maxLength: 30 },
)

const subject = fc.constantFrom('a', 'b', 'c')

const steps = fc.array(
  fc.oneof(
    drafts.map((signals) => ({ kind: 'write' as const, signals })),
    fc.integer({ min: 1, max: 20 }).map((rows) => ({ kind: 'roll up' as const, rows })),
    fc.array(fc.nat(), { minLength: 1, maxLength: 10 }).map((picks) => ({ kind: 'erase' as const, picks })),
    fc
      .array(
        fc.record({ subject, isPositive: fc.boolean(), commit: fc.integer({ min: 0, max: commits.length - 1 }) }),
        {
          minLength: 1,
          maxLength: 6,
        },
      )
      .map((votes) => ({ kind: 'vote' as const, votes })),
    subject.map((subject) => ({ kind: 'withdraw' as const, subject })),
  ),
  { minLength: 1, maxLength: 15 },
)

/** The signals with a subject, as they are stored. */
const votesOf = async ({ id }: Prompt) => {
  const rows = await service.services.db.sql<{ subject: string; id: number; value: string; commit: string | null }>`
    select subject, id, value, metadata ->> 'commit_sha' as commit from signals
    where prompt_id = ${id} and subject is not null order by subject`
  return rows.map(({ subject, ...vote }) => [subject, vote])
}

test('counts equal the rows after any order of writing, rolling up, voting, withdrawing and erasing', async () => {
  const { db, clock, signalRecorder } = service.services
  const { sql } = db
  service.clock.set(now.toISOString())
  await fc.assert(
    fc.asyncProperty(steps, async (given) => {
      const prompt = await createPrompt()
      let ids: number[] = []
      const votes = new Map<string, { id: number; value: string; commit: string | null }>()
      for (const step of given) {
        if (step.kind === 'vote') {
          const given = step.votes.map(({ subject, isPositive, commit: n }) => {
            const commit = commits[n] ?? null
            return { subject, commit, value: isPositive ? ('positive' as const) : ('negative' as const) }
          })
          // They are written together.
          const recorded = await Promise.all(
            given.map(({ subject, commit, value }) => {
              const metadata = commit && JSON.stringify({ commit_sha: commit })
              const vote = { value, metadata, idempotencyKey: null, subject }
              return signalRecorder.record(prompt, vote, Number.POSITIVE_INFINITY)
            }),
          )
          for (const [index, { id, outcome }] of recorded.entries()) {
            const { subject, ...vote } = given[index] as (typeof given)[number]
            const known = votes.get(subject)
            expect([outcome, id]).toEqual(known ? ['replaced', known.id] : ['recorded', id])
            if (!known) ids.push(id as number)
            votes.set(subject, { id: id as number, ...vote })
          }
        }
        if (step.kind === 'withdraw') {
          const known = votes.get(step.subject)
          const withdrawn = withdraw(db, clock, prompt, step.subject, { name: 'test' }).catch(() => undefined)
          expect(await withdrawn).toBe(known?.id)
          ids = ids.filter((id) => id !== known?.id)
          votes.delete(step.subject)
        }
        if (step.kind === 'write') ids.push(...(await write(sql, prompt, step.signals)).map(({ id }) => id as number))
        if (step.kind === 'roll up') await rollUpSignals(sql, prompt, step.rows)
        if (step.kind === 'erase' && ids.length > 0) {
          const chosen = [...new Set(step.picks.map((pick) => ids[pick % ids.length] as number))]
          expect(await erase(sql, prompt, [...chosen, 999_999_999])).toBe(chosen.length)
          ids = ids.filter((id) => !chosen.includes(id))
          for (const [subject, { id }] of votes) if (chosen.includes(id)) votes.delete(subject)
        }
        await expectExact(prompt)
        expect(await votesOf(prompt)).toEqual([...votes].toSorted())
      }
      // Without signals, no rows are left in the rollups.
      await erase(sql, prompt, ids)
      await expectExact(prompt)
    }),
    { numRuns: engine === 'postgres' ? 60 : 25, seed: Number(process.env.TEST_SEED ?? 15) },
  )
})

test('the signal at the watermark, and those beside it, are counted once: also within a quarter, and when erased', async () => {
  const { sql } = service.services.db
  // Between the two bounds that cut a quarter.
  const countBoth = async ({ id, organisationId }: Prompt) => {
    const day = { from: new Date('2026-11-10'), until: new Date('2026-11-11') }
    const list = {
      organisationId,
      filters: { search: null, archived: 'all' },
      sort: 'signals',
      withSignals: false,
      ...day,
    } as const
    const { places } = await selectSortedPrompts(sql, list, null, 1, 10)
    const month = await selectMonthCounts(sql, organisationId, [id], '2026-11')
    return [-Number(places[0]?.key), ...month.map(({ total }) => total)]
  }
  const minutesAgo = (now.getTime() - Date.parse('2026-11-10T10:07:30Z')) / 60_000
  for (const chosen of [0, 1, 2]) {
    const prompt = await createPrompt()
    const written = await write(sql, prompt, Array(3).fill({ minutesAgo, isPositive: true, commit: 1 }))
    expect(await rollUpSignals(sql, prompt, 2)).toBe(2)
    await expectExact(prompt)
    expect(await countBoth(prompt)).toEqual([3, 3, 3])
    expect([await isTailLongerThan(prompt, 0), await isTailLongerThan(prompt, 1)]).toEqual([true, false])
    expect(await erase(sql, prompt, [written[chosen]?.id as number])).toBe(1)
    await expectExact(prompt)
    expect(await rollUpSignals(sql, prompt, 2)).toBe(chosen === 2 ? 0 : 1)
    await expectExact(prompt)
  }
})

// The embedded engine runs one transaction at a time.
if (engine === 'postgres') {
  test('a prompt whose watermark cannot be locked keeps its signals and their keys', async () => {
    const prompt = await createPrompt()
    const undo = new Error('roll back')
    const tried = service.services.db.transaction(async (sql) => {
      const [signal] = await write(sql, prompt, [{ minutesAgo: 0, isPositive: true, commit: 0 }])
      await sql.script(`
        create or replace function lock_watermark(given_organisation_id bigint, given_prompt_id bigint) returns signal_watermarks
        language sql as 'select null::signal_watermarks'`)
      expect(await erase(sql, prompt, [signal?.id as number])).toBe(0)
      expect(await sql`select id from signals where prompt_id = ${prompt.id}`).toHaveLength(1)
      throw undo
    })
    await expect(tried).rejects.toBe(undo)
  })

  test('the first rollup waits for an erasure, and leaves out what that erases', async () => {
    const { db } = service.services
    const prompt = await createPrompt()
    const [first] = await write(db.sql, prompt, [
      { minutesAgo: 1, isPositive: true, commit: 1 },
      { minutesAgo: 0, isPositive: false, commit: 0 },
    ])
    let rollingUp: Promise<number> | undefined
    await db.transaction(async (sql) => {
      await erase(sql, prompt, [first?.id as number])
      rollingUp = rollUpSignals(db.sql, prompt, 100)
      rollingUp.catch(() => {})
      await untilLocked(db, 'roll_up_signals(')
    })
    expect(await rollingUp).toBe(1)
    await expectExact(prompt)
  })
}

test('neither a rollup nor a step of a purge waits for the disk, but what an organisation erases itself does', async () => {
  const prompt = await createTail(3)
  await service.services.db.transaction(async (sql) => {
    const isWaiting = async () => {
      const [row] = await sql`select current_setting('synchronous_commit') as level`
      await sql`select set_config('synchronous_commit', 'on', true)`
      return row?.level === 'on'
    }
    await sql`select set_config('synchronous_commit', 'on', true)`
    const [first] = await sql<{ id: number }>`select min(id) as id from signals where prompt_id = ${prompt.id}`
    await erase(sql, prompt, [first?.id as number])
    expect(await isWaiting()).toBe(true)
    expect(await rollUpSignals(sql, prompt, 10)).toBe(2)
    expect(await isWaiting()).toBe(false)
    expect((await eraseBefore(sql, prompt, new Date(0), new Date('2100-01-01'), 1)).erased).toBe(1)
    expect(await isWaiting()).toBe(false)
  })
})

test('replicas may roll up concurrently while signals arrive', async () => {
  const { db } = service.services
  const prompt = await createPrompt()
  const rollups = Array.from({ length: 3 }, () => createSignalRollup(db))
  const some = Array.from({ length: 400 }, (_, n) => ({ minutesAgo: n * 7, isPositive: n % 3 > 0, commit: n % 5 }))
  for (let round = 0; round < 4; round += 1) {
    await Promise.all([
      write(db.sql, prompt, some),
      ...rollups.map(async (rollup) => {
        for (let n = 0; n < 1_000; n += 1) rollup.recorded(prompt)
        await rollup.rollUpPending()
      }),
      expectExact(prompt),
    ])
  }
  await expectExact(prompt)
})

/** A prompt with signals that are not rolled up. */
async function createTail(number: number) {
  const prompt = await createPrompt()
  await service.services.db.sql`
    insert into signals (organisation_id, prompt_id, value, created_at)
    select ${prompt.organisationId}, ${prompt.id}, 'positive', ${now}::timestamptz
    from generate_series(1, ${number}::integer)`
  return prompt
}

const isTailLongerThan = async ({ id, organisationId }: OwnedPrompt, rows: number): Promise<boolean> =>
  (await selectPromptsBehind(service.services.db.sql, organisationId, [id], rows)).length > 0

test.each([
  ['stats', 3_500, (prompt: string) => `/prompts/${prompt}/stats`],
  // With thousands of prompts, these would be too many to add up.
  ['usage', 150, () => '/usage'],
  ['impact of all prompts', 150, () => '/impact'],
])('reading %s rolls up a tail of %d signals first', async (_, tail, pathTo) => {
  const prompt = await createTail(tail)
  expect(await isTailLongerThan(prompt, tail - 1)).toBe(true)
  expect((await service.get(pathTo(prompt.prompt), prompt.key)).status).toBe(200)
  expect(await isTailLongerThan(prompt, 0)).toBe(false)
  await expectExact(prompt)
})

test('a reader that cannot roll up in time is rejected, and the rest is rolled up immediately', async () => {
  const prompt = await createTail(4_500)
  const rollup = createSignalRollup(service.services.db, { patienceMs: 0 })
  const rejection = await rollup.catchUp(prompt).catch((error: unknown) => error)
  expect(rejection).toMatchObject({
    code: 'unavailable',
    headers: { 'retry-after': '10' },
  })
  await eventually(() => isTailLongerThan(prompt, 0), false)
  expect(await isTailLongerThan(prompt, 0)).toBe(false)
  await rollup.catchUp(prompt)
})

test.each([
  ['of fewer than 100 new signals waits', 100, 99, 100],
  ['of 100 new signals is rolled up', 100, 100, 0],
  ['that is far behind is rolled up until it no longer is', 12_500, 111_500, 500],
])('in one round, a prompt %s', async (_, tail, recorded, left) => {
  const prompt = await createTail(tail)
  const rollup = createSignalRollup(service.services.db, { maxStepRows: 1_000 })
  for (let n = 0; n < recorded; n += 1) rollup.recorded(prompt)
  await rollup.rollUpPending()
  expect(await isTailLongerThan(prompt, left)).toBe(false)
  if (left > 0) expect(await isTailLongerThan(prompt, left - 1)).toBe(true)
})
