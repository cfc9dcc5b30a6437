import { expect, test } from 'bun:test'
import { presets } from '../../src/lib/scopes.ts'
import { createAdmission } from '../../src/limit/admit.ts'
import { createSignalRecorder } from '../../src/signals/record.ts'
import type { Client } from '../client.ts'
import { eventually } from '../program.ts'
import type { Tenant } from '../service.ts'
import { countOf, startReplica } from '../signals/fixtures.ts'
import { SHOP, useBrowserKeys, usedBy } from './pages.ts'

const { service, tenant, browserKey, rotate, change, post } = useBrowserKeys()

const createAdmin = async (of: Tenant) => (await service.createKey(of, presets.admin)).key

test('the limit of the key is answered as its own, and leaves the organisation’s to others', async () => {
  service.clock.set('2026-11-14T23:35:00.000Z')
  const own = await service.createTenant(10)
  const { key, id } = await browserKey({ monthly_limit: 2 }, await createAdmin(own))
  const first = await post(key, { origin: SHOP }, own.prompt)
  expect([first.status, first.headers.get('ratelimit-policy')]).toEqual([201, '"signals";q=2;w=2592000'])
  expect(first.headers.get('ratelimit')).toStartWith('"signals";r=1;')
  expect((await post(key, {}, own.prompt)).status).toBe(201)
  // The second refusal comes from memory.
  for (const _ of [1, 2]) {
    const { status, headers, body } = await post(key, {}, own.prompt)
    expect(status).toBe(429)
    expect(body.error).toEqual({
      code: 'rate_limited',
      message: expect.stringContaining('This API key has used all 2 of its signals'),
      limited_by: 'key_month',
      limit: 2,
      used: 2,
      resets_at: '2026-12-01T00:00:00.000Z',
      request_id: expect.any(String),
    })
    expect(headers.get('ratelimit')).toStartWith('"signals";r=0;')
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
  }
  expect((await service.postSignal(own.prompt, own.key)).headers.get('ratelimit')).toStartWith('"signals";r=7;')
  expect(await usedBy(service, id)).toBe(2)
  expect(await usedBy(service, own.keyId)).toBe(0)
  // The month of the key turns with the organisation's.
  service.clock.set('2026-12-01T00:00:00.000Z')
  expect((await post(key, {}, own.prompt)).status).toBe(201)
})

test('the organisation’s limit holds for browser keys as well, and is answered as the organisation’s', async () => {
  const own = await service.createTenant(2)
  const { key } = await browserKey({ monthly_limit: 5 }, await createAdmin(own))
  for (const _ of [1, 2]) expect((await post(key, {}, own.prompt)).status).toBe(201)
  const error = { limit: 2, used: 2, limited_by: 'organisation_month' }
  expect(await post(key, {}, own.prompt)).toMatchObject({ status: 429, body: { error } })
  expect(await countOf(service, own)).toEqual({ rows: 2, used: 2 })
})

test('a retry with its Idempotency-Key is answered at the limit of the key too, and counts once', async () => {
  const { key, id } = await browserKey({ monthly_limit: 1 })
  const retry = { 'idempotency-key': 'browser-retry' }
  const first = await post(key, retry)
  expect((await post(key)).status).toBe(429)
  const again = await post(key, retry)
  expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
  expect(again.body).toEqual(first.body)
  const other = await post(key, { 'idempotency-key': 'browser-other' })
  expect(other.body.error).toMatchObject({ limited_by: 'key_month', used: 1 })
  expect(await usedBy(service, id)).toBe(1)
})

test('a used-up key is refused without a write, and each refusal counted, also with new Idempotency-Keys; a replay is still answered', async () => {
  const { db, clock, findPrompt, verifyKey } = service.services
  const { key } = await browserKey({ monthly_limit: 1 })
  const { organisationId, browser } = await verifyKey(`Bearer ${key}`)
  const prompt = await findPrompt(organisationId, tenant.prompt)
  const limited = { id: browser?.countedWith as number, monthlyLimit: 1 }
  let writes = 0
  const outcomes: string[] = []
  const observer = { ended: (outcome: string) => outcomes.push(outcome), batchStarted: () => (writes += 1) }
  const recorder = createSignalRecorder({ db, admission: createAdmission(db), observe: observer }, clock)
  const replica = createSignalRecorder({ db, admission: createAdmission(db) }, clock)
  const record = async (idempotencyKey: string, by = recorder) => {
    const signal = { value: 'positive' as const, metadata: null, idempotencyKey }
    const { outcome, limitedBy } = await by.record(prompt, signal, Number.POSITIVE_INFINITY, limited)
    return [outcome, limitedBy]
  }
  expect(await record('first', replica)).toEqual(['recorded', 'key_month'])
  expect(await record('refused')).toEqual(['refused', 'key_month'])
  const refusals = await Promise.all(['a', 'b', 'a', 'refused'].map((fresh) => record(fresh)))
  expect(refusals).toEqual(Array(4).fill(['refused', 'key_month']))
  expect(writes).toBe(1)
  expect(await record('first')).toEqual(['replayed', 'key_month'])
  expect(outcomes).toEqual([...Array(5).fill('refused'), 'replayed'])
})

test('within a second a raised limit has room, and a lowered one takes nothing more', async () => {
  const { key, id } = await browserKey({ monthly_limit: 1 })
  const limitTo = (monthly_limit: number | null) => change(id, { monthly_limit })
  const refusal = async () => {
    const { error } = (await post(key)).body
    return [error?.limited_by, error?.limit, error?.used]
  }
  expect([(await post(key)).status, (await post(key)).status]).toEqual([201, 429])
  expect((await limitTo(2)).body.data).toMatchObject({ origins: [SHOP], monthly_limit: 2 })
  await eventually(async () => (await post(key)).status, 201)
  await limitTo(1)
  await eventually(refusal, ['key_month', 1, 2])
  // What was recorded without a limit counts as well, once there is one.
  await limitTo(null)
  await eventually(async () => (await post(key)).status, 201)
  await limitTo(3)
  await eventually(async () => (await post(key)).status, 429, 1_000)
  const used = await usedBy(service, id)
  for (const _ of [1, 2]) expect(await refusal()).toEqual(['key_month', 3, used])
  expect(await usedBy(service, id)).toBe(used)
})

test('a rotated key and the one in its place have one count between them, and each a limit', async () => {
  const first = await browserKey({ monthly_limit: 3 })
  expect((await post(first.key)).status).toBe(201)
  const second = await rotate(first.id)
  expect((await post(second.key)).headers.get('ratelimit')).toStartWith('"signals";r=1;')
  const third = await rotate(second.id)
  const racing = await Promise.all([first, second, third, first, second, third].map(({ key }) => post(key)))
  expect(racing.map(({ status }) => status).toSorted()).toEqual([201, 429, 429, 429, 429, 429])
  for (const { key } of [first, second, third]) {
    expect((await post(key)).body.error).toMatchObject({ limited_by: 'key_month', limit: 3, used: 3 })
  }
  await change(third.id, { monthly_limit: 5 })
  await eventually(async () => (await post(third.key)).status, 201)
  await change(second.id, { origins: null, monthly_limit: null })
  await eventually(async () => (await post(second.key)).headers.get('ratelimit')?.startsWith('"signals";r=9'), true)
  expect((await post(third.key)).status).toBe(201)
  expect((await post(third.key)).body.error).toMatchObject({ limited_by: 'key_month', limit: 5, used: 5 })
  expect((await post(first.key)).body.error).toMatchObject({ limited_by: 'key_month', limit: 3, used: 5 })
  expect(await usedBy(service, first.id)).toBe(5)
})

test('exactly the limit is recorded by 50 racing callers of two replicas, among the signals of other keys', async () => {
  const own = await service.createTenant(70)
  const { key, id } = await browserKey({ monthly_limit: 20 }, await createAdmin(own))
  const replica = await startReplica(service)
  const statusVia = async (client: Client, caller: string) => (await client.postSignal(own.prompt, caller)).status
  const statusesOf = (caller: string) =>
    Promise.all(Array.from({ length: 50 }, (_, index) => statusVia(index % 2 ? service : replica, caller)))
  const [limited, ordinary] = await Promise.all([statusesOf(key), statusesOf(own.key)])
  expect(limited.toSorted()).toEqual([...Array(20).fill(201), ...Array(30).fill(429)])
  expect(ordinary).toEqual(Array(50).fill(201))
  expect(await usedBy(service, id)).toBe(20)
  expect(await countOf(service, own)).toEqual({ rows: 70, used: 70 })
})

test('both limits are exact when both are reached in one race', async () => {
  const own = await service.createTenant(30)
  const by = await createAdmin(own)
  const [one, two] = [await browserKey({ monthly_limit: 20 }, by), await browserKey({ monthly_limit: 25 }, by)]
  const callers = Array.from({ length: 100 }, (_, index) => post(index % 2 ? one.key : two.key, {}, own.prompt))
  const answers = await Promise.all(callers)
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(30)
  const counts = [await usedBy(service, one.id), await usedBy(service, two.id)]
  expect(counts[0]).toBeLessThanOrEqual(20)
  expect(counts[1]).toBeLessThanOrEqual(25)
  expect(Number(counts[0]) + Number(counts[1])).toBe(30)
  expect(await countOf(service, own)).toEqual({ rows: 30, used: 30 })
})
