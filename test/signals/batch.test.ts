import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createKey } from '../../src/keys/manage.ts'
import { pruneIdempotencyKeys } from '../../src/signals/prune.ts'
import { startService, type Tenant, type TestService } from '../service.ts'

let service: TestService
const now = '2026-11-14T23:35:00.500Z'

beforeAll(async () => {
  service = await startService()
})

afterAll(() => service.close())

const pathOf = ({ prompt }: Tenant) => `/api/v1/prompts/${prompt}/signals/batch`

const post = (tenant: Tenant, body: Bun.BodyInit, headers: Record<string, string> = {}) =>
  service.call('POST', pathOf(tenant), {
    key: tenant.key,
    body,
    headers: { 'content-type': 'application/json', ...headers },
  })

const record = (tenant: Tenant, signals: unknown[]) => post(tenant, JSON.stringify({ signals }))

const statusesOf = ({ body }: Awaited<ReturnType<typeof post>>): number[] =>
  body.data.map(({ status }: { status: number }) => status)

async function rowsOf({ org }: Tenant) {
  return service.services.db.sql`
    select s.id, s.value, s.metadata::text as metadata, s.created_at
    from signals s join organisations o on o.id = s.organisation_id
    where o.public_id = ${org} order by s.id`
}

async function usedBy({ org }: Tenant): Promise<number> {
  const [row] = await service.services.db.sql<{ used: number }>`
    select coalesce(sum(u.used), 0)::int as used
    from organisations o left join signal_usage u on u.organisation_id = o.id where o.public_id = ${org}`
  return row?.used as number
}

const positive = { value: 'positive' }

test('records every signal in order, each with its own time and its metadata as sent', async () => {
  service.clock.set(now)
  const tenant = await service.createTenant(10)
  const answer = await post(
    tenant,
    `{"x":[{"metadata":1}],"signals":[{"value":"positive","metadata":{"n": 9223372036854775807, "a":[{"b":"],}"}]}},
      {"created_at":"2026-11-01T01:00:00+01:00","value":"negative"} ]}`,
  )
  expect([answer.status, answer.body]).toEqual([
    200,
    {
      data: [
        { status: 201, id: expect.any(Number), created_at: now },
        { status: 201, id: expect.any(Number), created_at: '2026-11-01T00:00:00.000Z' },
      ],
    },
  ])
  expect(answer.headers.get('ratelimit')).toStartWith('"signals";r=8;')
  const [first, second] = answer.body.data
  expect(await rowsOf(tenant)).toEqual([
    {
      id: first.id,
      value: 'positive',
      metadata: '{"a": [{"b": "],}"}], "n": 9223372036854775807}',
      created_at: new Date(now),
    },
    { id: second.id, value: 'negative', metadata: null, created_at: new Date('2026-11-01T00:00:00Z') },
  ])
})

test('one that is not valid is rejected by itself, as the single route rejects it', async () => {
  service.clock.set(now)
  const tenant = await service.createTenant(10)
  const wrong = [
    { value: 'maybe' },
    { ...positive, metadata: [] },
    { ...positive, metadata: { a: 'x'.repeat(17_000) } },
  ]
  const alone = await Promise.all(wrong.map((one) => service.postSignal(tenant.prompt, tenant.key, one)))
  const answer = await record(tenant, [positive, ...wrong, positive])
  const { request_id } = answer.body.data[1].error
  expect(answer.body.data.slice(1, 4)).toEqual(
    alone.map(({ status, body: { error } }) => ({ status, error: { ...error, request_id } })),
  )
  expect(statusesOf(answer)).toEqual([201, 422, 422, 422, 201])
  expect(await usedBy(tenant)).toBe(2)
})

test.each([
  ['no object', null, ''],
  ['a text', 'positive', ''],
  ['a metadata that cannot be kept', { ...positive, metadata: { a: '\0' } }, '/metadata/a'],
  ['a time without a zone', { ...positive, created_at: '2026-11-14T00:00:00' }, '/created_at'],
  ['a time that is null', { ...positive, created_at: null }, '/created_at'],
  ['a time in the month before', { ...positive, created_at: '2026-10-31T23:59:59.999Z' }, '/created_at'],
  ['a time in the future', { ...positive, created_at: '2026-11-14T23:36:00.501Z' }, '/created_at'],
  ['an empty key', { ...positive, idempotency_key: '' }, '/idempotency_key'],
  ['a key of 256 characters', { ...positive, idempotency_key: 'x'.repeat(256) }, '/idempotency_key'],
  ['a key that is not ASCII', { ...positive, idempotency_key: 'ü' }, '/idempotency_key'],
])('a signal that is or has %s is a 422 that names the place', async (_, signal, path) => {
  service.clock.set(now)
  const tenant = await service.createTenant(10)
  const answer = await record(tenant, [signal, positive])
  expect(statusesOf(answer)).toEqual([422, 201])
  expect(answer.body.data[0].error.details.map((detail: { path: string }) => detail.path)).toContain(path)
})

test('a time up to a minute ahead is taken as now: no signal is ever of the future', async () => {
  service.clock.set(now)
  const tenant = await service.createTenant(10)
  const times = ['2026-11-14T23:35:00.501Z', '2026-11-14T23:36:00.500Z', now]
  const answer = await record(
    tenant,
    times.map((created_at) => ({ ...positive, created_at })),
  )
  expect(answer.body.data.map(({ created_at }: { created_at: string }) => created_at)).toEqual([now, now, now])
})

test('a batch sent again with its keys records nothing new, at the limit too', async () => {
  const tenant = await service.createTenant(3)
  const signals = ['a', 'b', 'c'].map((key) => ({ value: 'negative', metadata: { key }, idempotency_key: key }))
  const first = await record(tenant, signals)
  const again = await record(tenant, [...signals, { ...positive, idempotency_key: 'd' }])
  expect(again.body.data.slice(0, 3)).toEqual(first.body.data.map((one: object) => ({ ...one, replayed: true })))
  expect(statusesOf(again)).toEqual([201, 201, 201, 429])
  // The keys are those of single signals too.
  const alone = await service.call('POST', `/api/v1/prompts/${tenant.prompt}/signals`, {
    key: tenant.key,
    json: signals[0],
    headers: { 'idempotency-key': 'a' },
  })
  expect([alone.headers.get('idempotent-replayed'), alone.body.data.id]).toEqual(['true', first.body.data[0].id])
  expect(await usedBy(tenant)).toBe(3)
})

test('a key that is used for something else is a 422, whether it was used before or earlier in the batch', async () => {
  const tenant = await service.createTenant(10)
  await record(tenant, [{ ...positive, idempotency_key: 'old' }])
  const answer = await record(tenant, [
    { value: 'negative', idempotency_key: 'old' },
    { ...positive, metadata: { n: 1 }, idempotency_key: 'new' },
    { ...positive, metadata: { n: 1 }, idempotency_key: 'new' },
    { ...positive, metadata: { n: 2 }, idempotency_key: 'new' },
    { value: 'negative', metadata: { n: 1 }, idempotency_key: 'new' },
  ])
  expect(statusesOf(answer)).toEqual([422, 201, 201, 422, 422])
  expect(answer.body.data[2]).toEqual({ ...answer.body.data[1], replayed: true })
  for (const index of [0, 3, 4]) expect(answer.body.data[index].error.details[0].path).toBe('/idempotency_key')
  expect(await usedBy(tenant)).toBe(2)
})

test.each([
  ['no object', '[]', ''],
  ['without signals', '{}', '/signals'],
  ['with signals that are no list', '{"signals":{}}', '/signals'],
  ['empty', '{"signals":[]}', '/signals'],
  ['of 1,001', JSON.stringify({ signals: Array(1_001).fill(positive) }), '/signals'],
  ['no JSON', '{"signals":[{]}', ''],
  ['larger than 4 MiB', `{"signals":[{"value":"positive"}],"x":"${'x'.repeat(4 * 1024 * 1024)}"}`, ''],
])('a batch that is %s is rejected as a whole, and counts nothing', async (_, body, path) => {
  const tenant = await service.createTenant(10)
  const answer = await post(tenant, body)
  expect([answer.status, answer.body.error.code, answer.body.error.details[0].path]).toEqual([
    422,
    'validation_error',
    path,
  ])
  expect(await usedBy(tenant)).toBe(0)
})

test('the key of a signal of an earlier time is kept for as long as any other', async () => {
  service.clock.set(now)
  const tenant = await service.createTenant(10)
  const signals = [{ ...positive, created_at: '2026-11-02T00:00:00Z', idempotency_key: 'of long ago' }]
  const first = await record(tenant, signals)
  service.clock.set('2026-11-15T23:00:00.000Z')
  await pruneIdempotencyKeys(service.services.db, service.clock)
  const again = await record(tenant, signals)
  expect(again.body).toEqual({ data: [{ ...first.body.data[0], replayed: true }] })
  expect([await usedBy(tenant), (await rowsOf(tenant)).length]).toEqual([1, 1])
})

test('1,000 signals of 4 KB are one batch, plain and gzipped', async () => {
  const tenant = await service.createTenant(10_000)
  const signals = Array.from({ length: 1_000 }, (_, n) => ({ ...positive, metadata: { n, text: 'é"'.repeat(1_000) } }))
  const body = JSON.stringify({ signals })
  for (const answer of [
    await post(tenant, body),
    await post(tenant, Bun.gzipSync(body), { 'content-encoding': 'gzip' }),
  ]) {
    expect(new Set(statusesOf(answer))).toEqual(new Set([201]))
  }
  const kept = await rowsOf(tenant)
  expect(kept.map(({ metadata }) => JSON.parse(metadata as string))).toEqual(
    [...signals, ...signals].map(({ metadata }) => metadata),
  )
})

test('of signals given twice the last list counts', async () => {
  const tenant = await service.createTenant(10)
  const answer = await post(
    tenant,
    '{"signals":[{"value":"x"},{"value":"y"}],"\\u0073ignals":[{"value":"positive","metadata":{"a":[1,2]}}]}',
  )
  expect(statusesOf(answer)).toEqual([201])
  expect((await rowsOf(tenant))[0]?.metadata).toBe('{"a": [1, 2]}')
})

test('an Idempotency-Key for the whole batch is rejected, because it would protect nothing', async () => {
  const tenant = await service.createTenant(10)
  const answer = await post(tenant, JSON.stringify({ signals: [positive] }), { 'idempotency-key': 'all' })
  expect([answer.status, answer.body.error.details[0].path]).toEqual([422, 'Idempotency-Key'])
  expect(await usedBy(tenant)).toBe(0)
})

test('a browser key records signals one at a time', async () => {
  const tenant = await service.createTenant(10)
  const { key } = await createKey(service.services.db, service.clock, {
    org: tenant.org,
    name: 'page',
    scopes: ['signals:write'],
    expiresAt: null,
    origins: ['https://example.com'],
  })
  const answer = await record({ ...tenant, key }, [positive])
  expect([answer.status, answer.body.error.code]).toEqual([403, 'forbidden'])
  expect(await usedBy(tenant)).toBe(0)
})

test('a prompt of another organisation is answered like one that does not exist', async () => {
  const [own, other] = [await service.createTenant(10), await service.createTenant(10)]
  const answers = await Promise.all([other.prompt, 'pmt_none'].map((prompt) => record({ ...own, prompt }, [positive])))
  const [theirs, none] = answers.map(({ status, body: { error } }) => [status, { ...error, request_id: '' }])
  expect(theirs).toEqual(none)
  expect(theirs?.[0]).toBe(404)
})
