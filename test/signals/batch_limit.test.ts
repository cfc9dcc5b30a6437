// Batches at the monthly limit, and at their share of the service.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eventually } from '../program.ts'
import { startService, type Tenant, type TestService } from '../service.ts'

let service: TestService
const now = '2026-11-14T23:35:00.500Z'

beforeAll(async () => {
  service = await startService()
})

afterAll(() => service.close())

const pathOf = ({ prompt }: Tenant) => `/api/v1/prompts/${prompt}/signals/batch`

const post = (tenant: Tenant, body: string) =>
  service.call('POST', pathOf(tenant), { key: tenant.key, body, headers: { 'content-type': 'application/json' } })

const record = (tenant: Tenant, signals: unknown[]) => post(tenant, JSON.stringify({ signals }))

const statusesOf = ({ body }: Awaited<ReturnType<typeof post>>): number[] =>
  body.data.map(({ status }: { status: number }) => status)

async function rowsOf({ org }: Tenant) {
  return service.services.db.sql`
    select s.id from signals s join organisations o on o.id = s.organisation_id where o.public_id = ${org}`
}

async function usedBy({ org }: Tenant): Promise<number> {
  const [row] = await service.services.db.sql<{ used: number }>`
    select coalesce(sum(u.used), 0)::int as used
    from organisations o left join signal_usage u on u.organisation_id = o.id where o.public_id = ${org}`
  return row?.used as number
}

const positive = { value: 'positive' }

test('the first ones get the room, and the limit is exact', async () => {
  service.clock.set(now)
  const tenant = await service.createTenant(4)
  const answer = await record(tenant, [positive, { value: 'x' }, positive, positive, positive, positive, positive])
  expect(statusesOf(answer)).toEqual([201, 422, 201, 201, 201, 429, 429])
  const alone = await service.postSignal(tenant.prompt, tenant.key)
  expect(answer.body.data[6]).toEqual({
    status: 429,
    error: { ...alone.body.error, request_id: answer.headers.get('x-request-id') },
  })
  expect(answer.headers.get('ratelimit')).toStartWith('"signals";r=0;')
  expect([(await rowsOf(tenant)).length, await usedBy(tenant)]).toEqual([4, 4])
  expect(statusesOf(await record(tenant, [positive, positive]))).toEqual([429, 429])
})

test('near the limit a batch corrects the gate, so that what it refuses later stays off Postgres', async () => {
  service.clock.set(now)
  const tenant = await service.createTenant(10)
  const { organisationId } = await service.services.verifyKey(`Bearer ${tenant.key}`)
  await record(tenant, Array(9).fill(positive))
  await eventually(() => service.testRedis.get(`signals:{${organisationId}}:2026-11`), '9')
})

test('batches and single signals that race share the limit exactly', async () => {
  const tenant = await service.createTenant(50)
  const answers = await Promise.all(
    Array.from({ length: 24 }, (_, index) =>
      index % 2 ? record(tenant, Array(7).fill(positive)) : service.postSignal(tenant.prompt, tenant.key),
    ),
  )
  const recorded = answers.flatMap((answer) => (answer.status === 200 ? statusesOf(answer) : [answer.status]))
  expect(recorded.filter((status) => status === 201)).toHaveLength(50)
  expect(recorded.filter((status) => status === 429)).toHaveLength(12 * 7 + 12 - 50)
  expect([(await rowsOf(tenant)).length, await usedBy(tenant)]).toEqual([50, 50])
})

test('while one organisation sends large batches without a pause, another’s signals are recorded in time', async () => {
  const [busy, calm] = [await service.createTenant(1_000_000), await service.createTenant(1_000_000)]
  let settled = false
  const senders = Array.from({ length: 8 }, async () => {
    let batches = 0
    while (!settled) {
      const { status } = await record(busy, Array(1_000).fill(positive))
      expect(status).toBe(200)
      batches += 1
    }
    return batches
  })
  for (let n = 0; n < 20; n += 1) {
    const sentAt = performance.now()
    expect((await service.postSignal(calm.prompt, calm.key)).status).toBe(201)
    expect(performance.now() - sentAt).toBeLessThan(2_000)
  }
  settled = true
  const batches = (await Promise.all(senders)).reduce((sum, one) => sum + one)
  expect(await usedBy(busy)).toBe(batches * 1_000)
})

test('past its share of batches in flight an organisation is answered at once, and others are not', async () => {
  const [busy, calm] = [await service.createTenant(1_000_000), await service.createTenant(10)]
  const body = JSON.stringify({ signals: [{ ...positive, x: 'x'.repeat(4 * 1024 * 1024 - 200) }] })
  const answers = await Promise.all([...Array.from({ length: 12 }, () => post(busy, body)), record(calm, [positive])])
  const statuses = answers.slice(0, 12).map(({ status }) => status)
  expect(new Set(statuses)).toEqual(new Set([200, 500]))
  const rejected = answers.find(({ status }) => status === 500)
  expect([rejected?.headers.get('retry-after'), rejected?.body.error.message]).toEqual([
    '1',
    'Too many batches are under way. Send this one again shortly.',
  ])
  expect(answers[12]?.status).toBe(200)
  expect((await post(busy, body)).status).toBe(200)
})
