import { expect, test } from 'bun:test'
import { DeadlineError } from '../../src/lib/deadline.ts'
import { readUsage } from '../../src/limit/usage.ts'
import { organisationIdOf } from '../signals/fixtures.ts'
import { useService } from '../use.ts'

const service = useService()

const read = (key: string) => service.get('/usage', key)

test('shows the month by day and by prompt, with the limit and what is left of it', async () => {
  const { org, key, prompt } = await service.createTenant(10)
  const second = await service.createPrompt({ org }, 'second', {
    repository: 'acme/prompts',
    path: 'second.md',
  })
  await service.createPrompt({ org }, 'unused')
  for (const [at, of] of [
    ['2026-10-31T23:59:59.999Z', prompt],
    ['2026-11-01T00:00:00.000Z', prompt],
    ['2026-11-03T23:59:59.999Z', second],
    ['2026-11-04T00:00:00.000Z', second],
  ] as const) {
    service.clock.set(at)
    expect((await service.postSignal(of, key)).status).toBe(201)
  }
  expect((await read(key)).body).toEqual({
    data: {
      plan: 'free',
      month: '2026-11',
      limit: 10,
      used: 3,
      remaining: 7,
      resets_at: '2026-12-01T00:00:00.000Z',
      days: [
        { date: '2026-11-01', total: 1 },
        { date: '2026-11-02', total: 0 },
        { date: '2026-11-03', total: 1 },
        { date: '2026-11-04', total: 1 },
      ],
      prompts: [
        { prompt: second, name: 'second', repository: 'acme/prompts', total: 2 },
        { prompt, name: 'test', repository: null, total: 1 },
      ],
      other_prompts: { prompts: 0, total: 0 },
    },
  })
})

test('counts the same before and after the signals were counted, and no more than a hundred prompts one by one', async () => {
  const { org, key } = await service.createTenant(1_000_000)
  const { db } = service.services
  service.clock.set('2026-11-02T12:00:00.000Z')
  const id = await organisationIdOf(service, { org })
  await db.sql`
    insert into prompts (public_id, organisation_id, name, created_at)
    select 'pmt_usage' || n, ${id}, 'p', now() from generate_series(1, 320) n`
  await db.sql`
    insert into signals (organisation_id, prompt_id, value, created_at)
    select p.organisation_id, p.id, 'positive', '2026-11-01T00:00:00Z'::timestamptz + n * interval '1 hour'
    from prompts p, generate_series(1, 30) n
    where p.public_id like 'pmt_usage%' and n <= substr(p.public_id, 10)::integer`
  const { data: before } = (await read(key)).body
  expect(before.prompts).toHaveLength(100)
  expect(before.prompts[0].total).toBe(30)
  expect(before.other_prompts).toEqual({ prompts: 220, total: 6_165 })
  await db.sql`select roll_up_signals(organisation_id, id, 20) from prompts where public_id like 'pmt_usage%'`
  expect((await read(key)).body.data).toEqual(before)
  await db.sql`select roll_up_signals(organisation_id, id, 1000) from prompts where public_id like 'pmt_usage%'`
  expect((await read(key)).body.data).toEqual(before)
})

test('a day that has begun on another replica is shown, so that the days add up', async () => {
  const { key, prompt } = await service.createTenant(10)
  service.clock.set('2026-11-03T00:00:00.000Z')
  expect((await service.postSignal(prompt, key)).status).toBe(201)
  service.clock.set('2026-11-02T23:59:59.999Z')
  const { used, days } = (await read(key)).body.data
  expect({ used, days }).toEqual({
    used: 1,
    days: [
      { date: '2026-11-01', total: 0 },
      { date: '2026-11-02', total: 0 },
      { date: '2026-11-03', total: 1 },
    ],
  })
})

test('a usage that nobody waits for any more is not counted', async () => {
  const id = await organisationIdOf(service, await service.createTenant())
  const { db, clock, rollup } = service.services
  const reading = readUsage(db, clock, rollup, id, performance.now() - 1)
  await expect(reading).rejects.toBeInstanceOf(DeadlineError)
})
