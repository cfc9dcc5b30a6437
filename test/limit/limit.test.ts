import { expect, test } from 'bun:test'
import { type Plan, setPlan } from '../../src/orgs/manage.ts'
import { eventually } from '../program.ts'
import type { Tenant } from '../service.ts'
import { useService } from '../use.ts'

const service = useService()

const statusOf = async ({ prompt, key }: Tenant) => (await service.postSignal(prompt, key)).status

async function post(tenant: Tenant, times: number): Promise<number[]> {
  const statuses: number[] = []
  for (let count = 0; count < times; count += 1) statuses.push(await statusOf(tenant))
  return statuses
}

async function recorded(org: string): Promise<{ month: string; rows: number; used: number }[]> {
  return service.services.db.sql`
    select to_char(u.month, 'YYYY-MM') as month, u.used,
      (select count(*) from signals s
        where s.organisation_id = o.id and date_trunc('month', s.created_at at time zone 'utc') = u.month) as rows
    from signal_usage u join organisations o on o.id = u.organisation_id
    where o.public_id = ${org}
    order by u.month`
}

test('at the limit the answer is 429 with limit, used and the time of the reset', async () => {
  service.clock.set('2026-11-14T23:35:00.500Z')
  const tenant = await service.createTenant(2)
  await post(tenant, 2)
  const { status, headers, body } = await service.postSignal(tenant.prompt, tenant.key)
  expect({ status, body }).toEqual({
    status: 429,
    body: {
      error: {
        code: 'rate_limited',
        message:
          'This organisation has used all 2 of its signals for this month. Wait until resets_at, or ask the operator for more: orgs set-plan ORG PLAN --monthly-limit N.',
        limited_by: 'organisation_month',
        limit: 2,
        used: 2,
        resets_at: '2026-12-01T00:00:00.000Z',
        request_id: expect.any(String),
      },
    },
  })
  const secondsLeft = 16 * 86_400 + 24 * 60 + 60
  expect(headers.get('retry-after')).toBe(String(secondsLeft))
  expect(headers.get('ratelimit')).toBe(`"signals";r=0;t=${secondsLeft}`)
  expect(headers.get('ratelimit-policy')).toBe('"signals";q=2;w=2592000')
  expect(await recorded(tenant.org)).toEqual([{ month: '2026-11', rows: 2, used: 2 }])
})

test('a success says what is left', async () => {
  service.clock.set('2026-02-28T23:59:50.001Z')
  const { prompt, key } = await service.createTenant(5)
  await service.postSignal(prompt, key)
  const { headers } = await service.postSignal(prompt, key)
  expect(headers.get('ratelimit-policy')).toBe('"signals";q=5;w=2419200')
  expect(headers.get('ratelimit')).toBe('"signals";r=3;t=10')
})

test.each([
  ['November', '2026-11-30T23:59:59.999Z', '2026-12-01T00:00:00.000Z'],
  ['December', '2026-12-31T23:59:59.999Z', '2027-01-01T00:00:00.000Z'],
  ['leap February', '2028-02-29T23:59:59.999Z', '2028-03-01T00:00:00.000Z'],
  ['February of a common year', '2027-02-28T23:59:59.999Z', '2027-03-01T00:00:00.000Z'],
])('the month turns between its last millisecond and the next: %s', async (_, last, first) => {
  const tenant = await service.createTenant(2)
  service.clock.set(last)
  expect(await post(tenant, 3)).toEqual([201, 201, 429])
  const refused = await service.postSignal(tenant.prompt, tenant.key)
  expect(refused.body.error.resets_at).toBe(first)
  expect(refused.headers.get('retry-after')).toBe('1')
  service.clock.set(first)
  expect(await post(tenant, 3)).toEqual([201, 201, 429])
  expect(await recorded(tenant.org)).toEqual([
    { month: last.slice(0, 7), rows: 2, used: 2 },
    { month: first.slice(0, 7), rows: 2, used: 2 },
  ])
})

test('gives the last units to exactly as many of the racing callers, and takes none from another organisation', async () => {
  const [tenant, other] = [await service.createTenant(7), await service.createTenant(3)]
  const statuses = await Promise.all([...Array(100).fill(tenant), ...Array(3).fill(other)].map(statusOf))
  const own = statuses.slice(0, 100)
  expect(own.filter((status) => status === 201)).toHaveLength(7)
  expect(own.filter((status) => status === 429)).toHaveLength(93)
  expect(statuses.slice(100)).toEqual([201, 201, 201])
  expect(await recorded(tenant.org)).toEqual([expect.objectContaining({ rows: 7, used: 7 })])
})

test('a change of plan holds within a second', async () => {
  const tenant = await service.createTenant(2)
  const changePlan = (plan: Plan, limit: number | null) =>
    setPlan(service.services.db, service.clock, tenant.org, plan, limit)
  expect(await post(tenant, 3)).toEqual([201, 201, 429])
  await changePlan('free', 3)
  await eventually(() => statusOf(tenant), 201, 1_000)
  expect(await post(tenant, 1)).toEqual([429])
  await changePlan('team', null)
  await eventually(() => statusOf(tenant), 201, 1_000)
  const { headers } = await service.postSignal(tenant.prompt, tenant.key)
  expect(headers.get('ratelimit')).toStartWith('"signals";r=9995;')
  await changePlan('free', 1)
  const { status, body } = await service.postSignal(tenant.prompt, tenant.key)
  expect(status).toBe(429)
  expect(body.error).toMatchObject({ limit: 1, used: 5 })
})

test.each<[Plan, number]>([
  ['free', 1_000],
  ['team', 10_000],
  ['business', 100_000],
])('the plan %s has %p signals a month', async (plan, limit) => {
  const tenant = await service.createTenant(1)
  await setPlan(service.services.db, service.clock, tenant.org, plan, null)
  const { headers } = await service.postSignal(tenant.prompt, tenant.key)
  expect(headers.get('ratelimit-policy')).toStartWith(`"signals";q=${limit};`)
})
