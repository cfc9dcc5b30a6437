// The monthly limit of a browser key, beside that of its organisation.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createAdmission } from '../../src/limit/admit.ts'
import { createGate } from '../../src/limit/gate.ts'
import { createSignalRecorder } from '../../src/signals/record.ts'
import { eventually } from '../program.ts'
import { startService, type Tenant, type TestService } from '../service.ts'
import { createAdmin, createBrowserKey, postFromPage, SHOP, usedBy } from './pages.ts'

let service: TestService
let tenant: Tenant
let admin: string

beforeAll(async () => {
  service = await startService()
  tenant = await service.createTenant()
  admin = await createAdmin(service, tenant)
})

afterAll(() => service.close())

const browserKey = (more: object, by = admin) => createBrowserKey(service, by, more)

const post = (key: string, headers?: Record<string, string>, prompt = tenant.prompt) =>
  postFromPage(service, prompt, key, headers)

const recordedBy = async ({ org }: Tenant): Promise<{ rows: number; used: number }> => {
  const [row] = await service.services.db.sql<{ rows: number; used: number }>`
    select
      (select count(*)::integer from signals s where s.organisation_id = o.id) as rows,
      (select coalesce(sum(u.used), 0)::integer from signal_usage u where u.organisation_id = o.id) as used
    from organisations o where o.public_id = ${org}`
  return row as { rows: number; used: number }
}

test('the limit of the key is answered as its own, and leaves the organisation’s to others', async () => {
  service.clock.set('2026-11-14T23:35:00.000Z')
  const own = await service.createTenant(10)
  const { key, id } = await browserKey({ monthly_limit: 2 }, await createAdmin(service, own))
  const first = await post(key, { origin: SHOP }, own.prompt)
  expect([first.status, first.headers.get('ratelimit-policy')]).toEqual([201, '"signals";q=2;w=2592000'])
  expect(first.headers.get('ratelimit')).toStartWith('"signals";r=1;')
  expect((await post(key, {}, own.prompt)).status).toBe(201)
  // The second refusal comes from memory.
  for (const _ of [1, 2]) {
    const { status, headers, body } = await post(key, {}, own.prompt)
    expect({ status, body }).toEqual({
      status: 429,
      body: {
        error: {
          code: 'rate_limited',
          message: expect.stringContaining('This API key has used all 2 of its signals'),
          limited_by: 'key_month',
          limit: 2,
          used: 2,
          resets_at: '2026-12-01T00:00:00.000Z',
          request_id: expect.any(String),
        },
      },
    })
    expect(headers.get('ratelimit')).toStartWith('"signals";r=0;')
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
  }
  expect((await service.postSignal(own.prompt, own.key)).headers.get('ratelimit')).toStartWith('"signals";r=7;')
  expect(await usedBy(service, id)).toBe(2)
  // The month of the key turns with the organisation's.
  service.clock.set('2026-12-01T00:00:00.000Z')
  expect((await post(key, {}, own.prompt)).status).toBe(201)
})

test('the organisation’s limit holds for browser keys as well, and is answered as the organisation’s', async () => {
  const own = await service.createTenant(2)
  const { key } = await browserKey({ monthly_limit: 5 }, await createAdmin(service, own))
  const statuses = [await post(key, {}, own.prompt), await post(key, {}, own.prompt)].map(({ status }) => status)
  const { status, body } = await post(key, {}, own.prompt)
  expect(statuses).toEqual([201, 201])
  expect([status, body.error.limit, body.error.used, body.error.limited_by]).toEqual([429, 2, 2, 'organisation_month'])
  expect(await recordedBy(own)).toEqual({ rows: 2, used: 2 })
})

test('a retry with its Idempotency-Key is answered at the limit of the key too, and counts once', async () => {
  const { key, id } = await browserKey({ monthly_limit: 1 })
  const retry = { 'idempotency-key': 'browser-retry' }
  const first = await post(key, retry)
  expect((await post(key)).status).toBe(429)
  const again = await post(key, retry)
  expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
  expect(again.body).toEqual(first.body)
  expect((await post(key, { 'idempotency-key': 'browser-other' })).body.error).toMatchObject({
    limited_by: 'key_month',
    used: 1,
  })
  expect(await usedBy(service, id)).toBe(1)
})

test('a raised limit has room, and a lowered one takes nothing more', async () => {
  const { key, id } = await browserKey({ monthly_limit: 1 })
  const change = (monthly_limit: number | null) =>
    service.call('PATCH', `/api/v1/keys/${id}`, { key: admin, json: { monthly_limit } })
  const refusal = async () => {
    const { error } = (await post(key)).body
    return [error?.limited_by, error?.limit, error?.used]
  }
  expect([(await post(key)).status, (await post(key)).status]).toEqual([201, 429])
  expect((await change(2)).body.data).toMatchObject({ origins: [SHOP], monthly_limit: 2 })
  await eventually(async () => (await post(key)).status, 201)
  await change(1)
  await eventually(refusal, ['key_month', 1, 2])
  // What was recorded without a limit counts as well, once there is one.
  await change(null)
  await eventually(async () => (await post(key)).status, 201)
  await change(3)
  await eventually(refusal, ['key_month', 3, 3])
})

test('a rotated key and the one in its place have one count and one limit between them', async () => {
  const first = await browserKey({ monthly_limit: 3 })
  const rotate = async (id: string) =>
    (await service.call('POST', `/api/v1/keys/${id}/rotate`, { key: admin, json: {} })).body.data
  const change = (id: string, json: object) => service.call('PATCH', `/api/v1/keys/${id}`, { key: admin, json })
  expect((await post(first.key)).status).toBe(201)
  const second = await rotate(first.id)
  expect((await post(second.key)).headers.get('ratelimit')).toStartWith('"signals";r=1;')
  const third = await rotate(second.id)
  const racing = await Promise.all([first, second, third, first, second, third].map(({ key }) => post(key)))
  expect(racing.map(({ status }) => status).toSorted()).toEqual([201, 429, 429, 429, 429, 429])
  for (const { key } of [first, second, third]) {
    expect((await post(key)).body.error).toMatchObject({ limited_by: 'key_month', limit: 3, used: 3 })
  }
  expect(await usedBy(service, first.id)).toBe(3)
  for (const [changed, limit] of [
    [third, 4],
    [second, 5],
    [first, 6],
  ] as const) {
    expect((await change(changed.id, { monthly_limit: limit })).status).toBe(200)
    const log = (await service.call('GET', '/api/v1/audit?limit=3', { key: admin })).body.data
    expect(log.map(({ subject }: { subject: string }) => subject).toSorted()).toEqual(
      [first.id, second.id, third.id].toSorted(),
    )
    for (const { action, details } of log) expect([action, details.monthly_limit]).toEqual(['key.updated', limit])
    for (const { id, key } of [first, second, third]) {
      const { body } = await service.call('GET', `/api/v1/keys/${id}`, { key: admin })
      expect(body.data.monthly_limit).toBe(limit)
      if (id !== changed.id) continue
      await eventually(async () => (await post(key)).status, 201)
      await eventually(async () => (await post(key)).body.error?.used, limit)
    }
  }
  // What the others are counted with stays a browser key; the newest may become another one, with no limit of its own.
  const ordinary = { origins: null, monthly_limit: null }
  expect((await change(first.id, ordinary)).body.error.details[0].path).toBe('/origins')
  expect((await change(third.id, ordinary)).status).toBe(200)
  await eventually(async () => (await post(third.key)).status, 201)
  expect((await post(second.key)).body.error).toMatchObject({ limited_by: 'key_month', limit: 6, used: 6 })
  // Each is then the newest in turn.
  expect((await change(first.id, ordinary)).status).toBe(422)
  expect((await change(second.id, ordinary)).status).toBe(200)
  expect((await change(first.id, ordinary)).status).toBe(200)
})

test('an ordinary key that was rotated may become a browser key and an ordinary one again: nothing is counted with it', async () => {
  const keys = async (method: string, path: string, json: object) =>
    (await service.call(method, `/api/v1/keys${path}`, { key: admin, json })).body
  const { id } = (await keys('POST', '', { name: 'server', scopes: ['signals:write'] })).data
  const { data: rotated } = await keys('POST', `/${id}/rotate`, {})
  expect((await keys('PATCH', `/${id}`, { origins: [SHOP], monthly_limit: 3 })).data.monthly_limit).toBe(3)
  const ordinary = { origins: null, monthly_limit: null }
  expect(await keys('PATCH', `/${id}`, ordinary)).toMatchObject({ data: { ...ordinary, replaced_by: rotated.id } })
})

test('changes of a key and of the one in its place, at once, leave one limit', async () => {
  const first = await browserKey({ monthly_limit: 3 })
  const { body } = await service.call('POST', `/api/v1/keys/${first.id}/rotate`, { key: admin, json: {} })
  const ids = [first.id, body.data.id]
  const changes = Array.from({ length: 20 }, (_, index) =>
    service.call('PATCH', `/api/v1/keys/${ids[index % 2]}`, { key: admin, json: { monthly_limit: index } }),
  )
  expect((await Promise.all(changes)).map(({ status }) => status)).toEqual(Array(20).fill(200))
  const shown = await Promise.all(ids.map((id) => service.call('GET', `/api/v1/keys/${id}`, { key: admin })))
  expect(shown[0]?.body.data.monthly_limit).toBe(shown[1]?.body.data.monthly_limit)
})

test('exactly the limit is recorded by 50 racing callers of two replicas, among the signals of other keys', async () => {
  const own = await service.createTenant(70)
  const { key, id } = await browserKey({ monthly_limit: 20 }, await createAdmin(service, own))
  const { db } = service.services
  const [row] = await db.sql<{ id: number; organisationId: number }>`
    select id, organisation_id as "organisationId" from api_keys where public_id = ${id}`
  const limitedKey = { id: row?.id as number, monthlyLimit: 20 }
  const prompt = await service.services.findPrompt(row?.organisationId as number, own.prompt)
  const replica = createSignalRecorder(db, createAdmission(db, createGate(service.redis)), service.clock)
  const signal = { value: 'positive' as const, metadata: null, idempotencyKey: null }
  const viaReplica = async (limited: boolean) => {
    const { outcome } = await replica.record(prompt, signal, Number.POSITIVE_INFINITY, limited ? limitedKey : null)
    return outcome === 'recorded' ? 201 : 429
  }
  const viaService = async (limited: boolean) => (await post(limited ? key : own.key, {}, own.prompt)).status
  const statusesOf = (limited: boolean) =>
    Promise.all(Array.from({ length: 50 }, (_, index) => (index % 2 ? viaService : viaReplica)(limited)))
  const [limited, ordinary] = await Promise.all([statusesOf(true), statusesOf(false)])
  expect(limited.toSorted()).toEqual([...Array(20).fill(201), ...Array(30).fill(429)])
  expect(ordinary).toEqual(Array(50).fill(201))
  expect(await usedBy(service, id)).toBe(20)
  expect(await recordedBy(own)).toEqual({ rows: 70, used: 70 })
})

test('both limits are exact when both are reached in one race', async () => {
  const own = await service.createTenant(30)
  const by = await createAdmin(service, own)
  const [one, two] = [await browserKey({ monthly_limit: 20 }, by), await browserKey({ monthly_limit: 25 }, by)]
  const callers = Array.from({ length: 100 }, (_, index) => post(index % 2 ? one.key : two.key, {}, own.prompt))
  const answers = await Promise.all(callers)
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(30)
  const counts = [await usedBy(service, one.id), await usedBy(service, two.id)]
  expect(counts[0]).toBeLessThanOrEqual(20)
  expect(counts[1]).toBeLessThanOrEqual(25)
  expect(Number(counts[0]) + Number(counts[1])).toBe(30)
  expect(await recordedBy(own)).toEqual({ rows: 30, used: 30 })
})

test('an ordinary key writes no usage row of its own', async () => {
  expect((await service.postSignal(tenant.prompt, tenant.key)).status).toBe(201)
  expect(await usedBy(service, tenant.keyId)).toBe(0)
})
