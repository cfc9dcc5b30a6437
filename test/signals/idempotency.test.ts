import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createApp } from '../../src/app.ts'
import { openRedis } from '../../src/db/redis.ts'
import { createServices } from '../../src/deps.ts'
import { crashResponse } from '../../src/http/middleware.ts'
import { createAdmission } from '../../src/limit/admit.ts'
import { noGate } from '../../src/limit/gate.ts'
import { createLog } from '../../src/log.ts'
import { setPlan } from '../../src/orgs/manage.ts'
import { listen } from '../../src/platform.ts'
import { createPrompt } from '../../src/prompts/manage.ts'
import { pruneIdempotencyKeys } from '../../src/signals/prune.ts'
import { createSignalRecorder } from '../../src/signals/record.ts'
import { type Client, createClient } from '../client.ts'
import { redisPrefix, redisUrl } from '../harness.ts'
import { startService, type Tenant, type TestService } from '../service.ts'

let service: TestService

beforeAll(async () => {
  service = await startService()
})

afterAll(() => service.close())

const body = '{"value":"positive","metadata":{"a":1,"b":[2]}}'

const post = ({ prompt, key }: Tenant, idempotencyKey: string, text = body, client: Client = service) =>
  client.call('POST', `/api/v1/prompts/${prompt}/signals`, {
    key,
    body: text,
    headers: { 'content-type': 'application/json', 'idempotency-key': idempotencyKey },
  })

async function countOf(org: string): Promise<{ rows: number; used: number }> {
  const [row] = await service.services.db.sql<{ rows: number; used: number }>`
    select coalesce(sum(u.used), 0)::int as used,
      (select count(*) from signals s where s.organisation_id = min(o.id)) as rows
    from organisations o left join signal_usage u on u.organisation_id = o.id
    where o.public_id = ${org}`
  return row as { rows: number; used: number }
}

test('a replay is answered as the first request was, and spends nothing', async () => {
  const tenant = await service.createTenant(10)
  const first = await post(tenant, 'once')
  expect([first.status, first.headers.get('idempotent-replayed')]).toEqual([201, null])
  const again = await post(tenant, 'once')
  expect([again.status, again.headers.get('idempotent-replayed'), again.text]).toEqual([201, 'true', first.text])
  expect(again.headers.get('ratelimit')).toStartWith('"signals";r=9;')
  expect(await countOf(tenant.org)).toEqual({ rows: 1, used: 1 })
})

test('what is the same does not depend on blanks, the order of members or the quotes of the key', async () => {
  const tenant = await service.createTenant()
  const first = await post(tenant, 'a "quoted" \\ key')
  const again = await post(
    tenant,
    '"a \\"quoted\\" \\\\ key"',
    '{ "metadata": {"b":[2], "a":1}, "value": "positive", "x": 1 }',
  )
  expect([again.status, again.text]).toEqual([201, first.text])
})

test('a replay works at the limit too', async () => {
  const tenant = await service.createTenant(1)
  const first = await post(tenant, 'last')
  expect((await post(tenant, 'another')).status).toBe(429)
  expect((await service.postSignal(tenant.prompt, tenant.key)).status).toBe(429)
  const again = await post(tenant, 'last')
  expect([again.status, again.text]).toEqual([201, first.text])
})

test('the same key with another body or prompt is rejected', async () => {
  const tenant = await service.createTenant()
  await post(tenant, 'mine')
  const other = await createPrompt(service.services.db, service.clock, { org: tenant.org, name: 'other', id: null })
  for (const answer of [
    await post(tenant, 'mine', '{"value":"negative","metadata":{"a":1,"b":[2]}}'),
    await post(tenant, 'mine', '{"value":"positive"}'),
    await post({ ...tenant, prompt: other.id }, 'mine'),
  ]) {
    expect([answer.status, answer.body.error.code]).toEqual([422, 'validation_error'])
    expect(answer.body.error.details[0].path).toBe('Idempotency-Key')
  }
  expect(await countOf(tenant.org)).toEqual({ rows: 1, used: 1 })
})

test('a refused request pins nothing', async () => {
  const tenant = await service.createTenant(0)
  expect((await post(tenant, 'free')).status).toBe(429)
  expect((await post(tenant, 'free', '{"value":"maybe"}')).status).toBe(422)
  expect((await post({ ...tenant, prompt: 'pmt_none' }, 'free')).status).toBe(404)
  await setPlan(service.services.db, service.clock, tenant.org, 'free', 5)
  expect((await post(tenant, 'free', '{"value":"negative"}')).status).toBe(201)
})

test('a key is its organisation’s own', async () => {
  const [one, two] = [await service.createTenant(), await service.createTenant()]
  const first = await post(one, 'shared')
  const second = await post(two, 'shared', '{"value":"negative"}')
  expect([second.status, second.headers.get('idempotent-replayed')]).toEqual([201, null])
  expect(second.body.data.id).not.toBe(first.body.data.id)
})

test.each(['x'.repeat(256), '""', 'ü', `"${'x'.repeat(256)}"`])('the key %p is rejected', async (idempotencyKey) => {
  const { status, body: answer } = await post(await service.createTenant(), idempotencyKey)
  expect([status, answer.error.details[0].path]).toEqual([422, 'Idempotency-Key'])
})

test('255 characters are a key', async () => {
  expect((await post(await service.createTenant(), 'x'.repeat(255))).status).toBe(201)
})

test('twenty concurrent retries on two replicas: one recorded, twenty equal responses', async () => {
  const { db } = service.services
  const services = createServices({
    db,
    redis: openRedis(redisUrl(), redisPrefix()),
    clock: service.clock,
    log: createLog('silent'),
  })
  const listener = listen(createApp(services), crashResponse, '127.0.0.1', 0)
  const replica = await createClient(listener.url)
  for (let round = 0; round < 5; round += 1) {
    const tenant = await service.createTenant(3)
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => post(tenant, 'race', body, index % 2 ? replica : service)),
    )
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(answers[0]?.status).toBe(201)
    expect(answers.filter(({ headers }) => !headers.has('idempotent-replayed'))).toHaveLength(1)
    expect(await countOf(tenant.org)).toEqual({ rows: 1, used: 1 })
  }
  await listener.stop()
})

test('a key sent to two replicas, one of which is in the next month already, is recorded once', async () => {
  const { db, findPrompt, verifyKey } = service.services
  const tenant = await service.createTenant()
  const prompt = await findPrompt((await verifyKey(`Bearer ${tenant.key}`)).organisationId, tenant.prompt)
  const replicas = ['2026-11-30T23:59:59.999Z', '2026-12-01T00:00:00.000Z'].map((instant) =>
    createSignalRecorder(db, createAdmission(db, noGate), { now: () => new Date(instant) }),
  )
  for (let round = 0; round < 30; round += 1) {
    const signal = { value: 'positive' as const, metadata: null, idempotencyKey: `turn ${round}` }
    const recorded = await Promise.all(
      replicas.map((replica) => replica.record(prompt, signal, Number.POSITIVE_INFINITY)),
    )
    expect(recorded.map(({ outcome }) => outcome).sort()).toEqual(['recorded', 'replayed'])
    expect(recorded[0]?.id).toBe(recorded[1]?.id as number)
  }
  expect(await countOf(tenant.org)).toEqual({ rows: 30, used: 30 })
})

test('keys are kept for a day and then forgotten', async () => {
  const tenant = await service.createTenant()
  service.clock.set('2026-11-10T12:00:00.000Z')
  const first = await post(tenant, 'day')
  service.clock.set('2026-11-11T12:00:00.000Z')
  await pruneIdempotencyKeys(service.services.db, service.clock)
  expect((await post(tenant, 'day')).text).toBe(first.text)
  service.clock.set('2026-11-11T12:00:00.001Z')
  await pruneIdempotencyKeys(service.services.db, service.clock)
  const second = await post(tenant, 'day')
  expect([second.status, second.headers.get('idempotent-replayed')]).toEqual([201, null])
})
