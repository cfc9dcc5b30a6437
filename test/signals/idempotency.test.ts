import { expect, test } from 'bun:test'
import { createAdmission } from '../../src/limit/admit.ts'
import { setPlan } from '../../src/orgs/manage.ts'
import { createSignalRecorder, pruneIdempotencyKeys } from '../../src/signals/record.ts'
import { type Client, invalid } from '../client.ts'
import { eventually } from '../program.ts'
import { useNewTenant, useService } from '../use.ts'
import { countOf, postText, startReplica } from './fixtures.ts'

const service = useService()
const tenant = useNewTenant(service, 1)

const body = '{"value":"positive","metadata":{"a":1,"b":[2]}}'

const post = (idempotencyKey: string, text = body, of = tenant, client: Client = service) =>
  postText(client, of, text, { 'idempotency-key': idempotencyKey })

const expectOne = async () => expect(await countOf(service, tenant)).toEqual({ rows: 1, used: 1 })

test('a replay gets the first response and does not count, also at the limit', async () => {
  const first = await post('once')
  expect([first.status, first.headers.get('idempotent-replayed')]).toEqual([201, null])
  expect((await post('another')).status).toBe(429)
  const again = await post('once')
  expect([again.status, again.headers.get('idempotent-replayed'), again.text]).toEqual([201, 'true', first.text])
  expect(again.headers.get('ratelimit')).toStartWith('"signals";r=0;')
  await expectOne()
})

test('blanks, the order of members and the quotes of a long key make no difference', async () => {
  const first = await post(`a "quoted" \\ key${'x'.repeat(239)}`)
  const same = '{ "metadata": {"b":[2], "a":1}, "value": "positive", "x": 1 }'
  const again = await post(`"a \\"quoted\\" \\\\ key${'x'.repeat(239)}"`, same)
  expect([again.status, again.text]).toEqual([201, first.text])
})

test('the same key with another body or prompt is rejected', async () => {
  await post('mine')
  const prompt = await service.createPrompt(tenant, 'other')
  for (const answer of [
    await post('mine', '{"value":"negative","metadata":{"a":1,"b":[2]}}'),
    await post('mine', '{"value":"positive"}'),
    await post('mine', '{"value":"positive","metadata":{"a":1,"b":[[2]]}}'),
    await post('mine', '{"value":"positive","metadata":{"a":1,"b":[[[2]]]}}'),
    await post('mine', body, { ...tenant, prompt }),
  ]) {
    expect(answer).toMatchObject(invalid('Idempotency-Key'))
  }
  await expectOne()
})

test('a refused request pins nothing', async () => {
  const full = await service.createTenant(0)
  expect((await post('free', body, full)).status).toBe(429)
  expect((await post('free', '{"value":"maybe"}', full)).status).toBe(422)
  expect((await post('free', body, { ...full, prompt: 'pmt_none' })).status).toBe(404)
  await setPlan(service.services.db, service.clock, full.org, 'free', 5)
  await eventually(async () => (await post('free', '{"value":"negative"}', full)).status, 201)
})

test.each(['x'.repeat(256), '""', 'ü', `"${'x'.repeat(256)}"`])('the key %p is rejected', async (idempotencyKey) => {
  expect(await post(idempotencyKey)).toMatchObject(invalid('Idempotency-Key'))
})

test('twenty concurrent retries on two replicas: one recorded, twenty equal responses', async () => {
  const replica = await startReplica(service)
  for (let round = 0; round < 5; round += 1) {
    const racing = await service.createTenant(3)
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => post('race', body, racing, index % 2 ? replica : service)),
    )
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(answers[0]?.status).toBe(201)
    expect(answers.filter(({ headers }) => !headers.has('idempotent-replayed'))).toHaveLength(1)
    expect(await countOf(service, racing)).toEqual({ rows: 1, used: 1 })
  }
})

test('a key sent to two replicas, one of which is in the next month already, is recorded once', async () => {
  const { db, findPrompt, verifyKey } = service.services
  const own = await service.createTenant()
  const prompt = await findPrompt((await verifyKey(`Bearer ${own.key}`)).organisationId, own.prompt)
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
  expect(await countOf(service, own)).toEqual({ rows: 30, used: 30 })
})

test('a key is forgotten after a day, and not before', async () => {
  const own = await service.createTenant()
  for (const [time, isReplayed] of [
    ['2026-11-10T12:00:00.000Z', false],
    ['2026-11-11T12:00:00.000Z', true],
    ['2026-11-11T12:00:00.001Z', false],
  ] as const) {
    service.clock.set(time)
    await pruneIdempotencyKeys(service.services.db, service.clock.now())
    const { status, headers } = await post('day', body, own)
    expect([status, headers.has('idempotent-replayed')]).toEqual([201, isReplayed])
  }
})
