import { expect, test } from 'bun:test'
import { createAdmission } from '../../src/limit/admit.ts'
import { setPlan } from '../../src/orgs/manage.ts'
import { createSignalRecorder, pruneIdempotencyKeys } from '../../src/signals/record.ts'
import { type Client, invalid } from '../client.ts'
import { eventually } from '../program.ts'
import type { Tenant } from '../service.ts'
import { useService } from '../use.ts'
import { countOf, postText, startReplica } from './fixtures.ts'

const service = useService()

const body = '{"value":"positive","metadata":{"a":1,"b":[2]}}'

const post = (tenant: Tenant, idempotencyKey: string, text = body, client: Client = service) =>
  postText(client, tenant, text, { 'idempotency-key': idempotencyKey })

test('a replay gets the first response and does not count, also at the limit', async () => {
  const tenant = await service.createTenant(1)
  const first = await post(tenant, 'once')
  expect(first.status).toBe(201)
  expect(first.headers.get('idempotent-replayed')).toBeNull()
  expect((await post(tenant, 'another')).status).toBe(429)
  const again = await post(tenant, 'once')
  expect(again.status).toBe(201)
  expect(again.text).toBe(first.text)
  expect(again.headers.get('idempotent-replayed')).toBe('true')
  expect(again.headers.get('ratelimit')).toStartWith('"signals";r=0;')
  expect(await countOf(service, tenant)).toEqual({ rows: 1, used: 1 })
})

test('blanks, the order of members and the quotes of a long key make no difference', async () => {
  const tenant = await service.createTenant()
  const first = await post(tenant, `a "quoted" \\ key${'x'.repeat(239)}`)
  const again = await post(
    tenant,
    `"a \\"quoted\\" \\\\ key${'x'.repeat(239)}"`,
    '{ "metadata": {"b":[2], "a":1}, "value": "positive", "x": 1 }',
  )
  expect(again.status).toBe(201)
  expect(again.text).toBe(first.text)
})

test('the same key with another body or prompt is rejected', async () => {
  const tenant = await service.createTenant()
  await post(tenant, 'mine')
  const other = await service.createPrompt(tenant, 'other')
  for (const answer of [
    await post(tenant, 'mine', '{"value":"negative","metadata":{"a":1,"b":[2]}}'),
    await post(tenant, 'mine', '{"value":"positive"}'),
    await post({ ...tenant, prompt: other }, 'mine'),
  ]) {
    expect(answer).toMatchObject(invalid('Idempotency-Key'))
  }
  expect(await countOf(service, tenant)).toEqual({ rows: 1, used: 1 })
})

test('a refused request pins nothing', async () => {
  const tenant = await service.createTenant(0)
  expect((await post(tenant, 'free')).status).toBe(429)
  expect((await post(tenant, 'free', '{"value":"maybe"}')).status).toBe(422)
  expect((await post({ ...tenant, prompt: 'pmt_none' }, 'free')).status).toBe(404)
  await setPlan(service.services.db, service.clock, tenant.org, 'free', 5)
  await eventually(async () => (await post(tenant, 'free', '{"value":"negative"}')).status, 201)
})

test.each(['x'.repeat(256), '""', 'ü', `"${'x'.repeat(256)}"`])('the key %p is rejected', async (idempotencyKey) => {
  expect(await post(await service.createTenant(), idempotencyKey)).toMatchObject(invalid('Idempotency-Key'))
})

test('twenty concurrent retries on two replicas: one recorded, twenty equal responses', async () => {
  const replica = await startReplica(service)
  for (let round = 0; round < 5; round += 1) {
    const tenant = await service.createTenant(3)
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => post(tenant, 'race', body, index % 2 ? replica : service)),
    )
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(answers[0]?.status).toBe(201)
    expect(answers.filter(({ headers }) => !headers.has('idempotent-replayed'))).toHaveLength(1)
    expect(await countOf(service, tenant)).toEqual({ rows: 1, used: 1 })
  }
})

test('a key sent to two replicas, one of which is in the next month already, is recorded once', async () => {
  const { db, findPrompt, verifyKey } = service.services
  const tenant = await service.createTenant()
  const prompt = await findPrompt((await verifyKey(`Bearer ${tenant.key}`)).organisationId, tenant.prompt)
  const replicas = ['2026-11-30T23:59:59.999Z', '2026-12-01T00:00:00.000Z'].map((instant) =>
    createSignalRecorder({ db, admission: createAdmission(db) }, { now: () => new Date(instant) }),
  )
  for (let round = 0; round < 30; round += 1) {
    const signal = { value: 'positive' as const, metadata: null, idempotencyKey: `turn ${round}` }
    const recorded = await Promise.all(
      replicas.map((replica) => replica.record(prompt, signal, Number.POSITIVE_INFINITY)),
    )
    expect(recorded.map(({ outcome }) => outcome).sort()).toEqual(['recorded', 'replayed'])
    expect(recorded[0]?.id).toBe(recorded[1]?.id as number)
  }
  expect(await countOf(service, tenant)).toEqual({ rows: 30, used: 30 })
})

test('a key is forgotten after a day, and not before', async () => {
  const tenant = await service.createTenant()
  const isReplayed = async () => {
    await pruneIdempotencyKeys(service.services.db, service.clock.now())
    const { status, headers } = await post(tenant, 'day')
    expect(status).toBe(201)
    return headers.has('idempotent-replayed')
  }
  service.clock.set('2026-11-10T12:00:00.000Z')
  expect(await isReplayed()).toBe(false)
  service.clock.set('2026-11-11T12:00:00.000Z')
  expect(await isReplayed()).toBe(true)
  service.clock.set('2026-11-11T12:00:00.001Z')
  expect(await isReplayed()).toBe(false)
})
