import { beforeEach, expect, spyOn, test } from 'bun:test'
import { unavailable } from '../../src/errors.ts'
import { parseBatch } from '../../src/signals/batch.ts'
import { pruneIdempotencyKeys } from '../../src/signals/record.ts'
import { type Answer, invalid } from '../client.ts'
import { during } from '../program.ts'
import type { Tenant } from '../service.ts'
import { useNewTenant, useService } from '../use.ts'
import { countOf, postBatch, postText, statusesOf } from './fixtures.ts'

const now = '2026-11-14T23:35:00.500Z'
const positive = { value: 'positive' }
const service = useService()
const tenant = useNewTenant(service, 10)

beforeEach(() => service.clock.set(now))

const record = (signals: unknown[], of = tenant) => postBatch(service, of, signals)
const post = (body: Bun.BodyInit, headers: Record<string, string> = {}, of = tenant) =>
  postText(service, of, body, { path: 'signals/batch', ...headers })

const rowsOf = ({ org }: Tenant) => service.services.db.sql`
  select s.id, s.value, s.metadata::text as metadata, s.created_at
  from signals s join organisations o on o.id = s.organisation_id
  where o.public_id = ${org} order by s.id`

/** What is wrong with each signal that is rejected. */
const pathsOf = ({ body }: Answer): (string | undefined)[] =>
  body.data.map(({ error }: { error?: { details: { path: string }[] } }) => error?.details[0]?.path)

const expectCount = async (count: number, of = tenant) =>
  expect(await countOf(service, of)).toEqual({ rows: count, used: count })

test('records every signal in order, each with its own time and its metadata as sent', async () => {
  const answer = await post(
    `{"x":[{"metadata":1}],"signals":[{"value":"positive","metadata":{"n": 9223372036854775807, "a":[{"b":"],}"}]}},
      {"created_at":"2026-11-01T01:00:00+01:00","value":"negative"} ]}`,
  )
  expect(answer.status).toBe(200)
  expect(answer.body.data).toEqual([
    { status: 201, id: expect.any(Number), created_at: now },
    { status: 201, id: expect.any(Number), created_at: '2026-11-01T00:00:00.000Z' },
  ])
  expect(answer.headers.get('ratelimit')).toStartWith('"signals";r=8;')
  const [first, second] = answer.body.data
  const metadata = '{"a": [{"b": "],}"}], "n": 9223372036854775807}'
  expect(await rowsOf(tenant)).toEqual([
    { id: first.id, value: 'positive', metadata, created_at: new Date(now) },
    { id: second.id, value: 'negative', metadata: null, created_at: new Date('2026-11-01T00:00:00Z') },
  ])
})

test('an invalid signal gets the error of the single route, and does not fail the others', async () => {
  const wrong = [
    { value: 'maybe' },
    { ...positive, metadata: [] },
    { ...positive, metadata: { a: 'x'.repeat(17_000) } },
  ]
  const single = await Promise.all(wrong.map((one) => service.postSignal(tenant.prompt, tenant.key, one)))
  const answer = await record([positive, ...wrong, positive])
  const { request_id } = answer.body.data[1].error
  const expected = single.map(({ status, body: { error } }) => ({ status, error: { ...error, request_id } }))
  expect(answer.body.data.slice(1, 4)).toEqual(expected)
  expect(statusesOf(answer)).toEqual([201, 422, 422, 422, 201])
  await expectCount(2)
})

test.each([
  ['not an object', null, ''],
  ['a string', 'positive', ''],
  ['with metadata that cannot be stored', { ...positive, metadata: { a: '\0' } }, '/metadata/a'],
  ['with a time without a zone', { ...positive, created_at: '2026-11-14T00:00:00' }, '/created_at'],
  ['with a time that is null', { ...positive, created_at: null }, '/created_at'],
  ['of the month before', { ...positive, created_at: '2026-10-31T23:59:59.999Z' }, '/created_at'],
  ['of the future', { ...positive, created_at: '2026-11-14T23:36:00.501Z' }, '/created_at'],
  ['with an empty key', { ...positive, idempotency_key: '' }, '/idempotency_key'],
  ['with a key of 256 characters', { ...positive, idempotency_key: 'x'.repeat(256) }, '/idempotency_key'],
  ['with a key that is not ASCII', { ...positive, idempotency_key: 'ü' }, '/idempotency_key'],
])('a signal %s is a 422 that names the place', async (_, signal, path) => {
  const answer = await record([signal, positive])
  expect(statusesOf(answer)).toEqual([422, 201])
  expect(answer.body.data[0].error.details.map((detail: { path: string }) => detail.path)).toContain(path)
})

test('a time up to a minute ahead is recorded as now', async () => {
  const times = ['2026-11-14T23:35:00.501Z', '2026-11-14T23:36:00.500Z', now]
  const answer = await record(times.map((created_at) => ({ ...positive, created_at })))
  expect(answer.body.data.map(({ created_at }: { created_at: string }) => created_at)).toEqual([now, now, now])
})

test('a batch sent again with its keys records nothing new, also at the limit', async () => {
  const full = await service.createTenant(3)
  const signals = ['a', 'b', 'c'].map((key) => ({ value: 'negative', metadata: { key }, idempotency_key: key }))
  const first = await record(signals, full)
  const again = await record([...signals, { ...positive, idempotency_key: 'd' }], full)
  expect(again.body.data.slice(0, 3)).toEqual(first.body.data.map((one: object) => ({ ...one, replayed: true })))
  expect(statusesOf(again)).toEqual([201, 201, 201, 429])
  // Single signals share the keys.
  const single = await postText(service, full, JSON.stringify(signals[0]), { 'idempotency-key': 'a' })
  expect(single.headers.get('idempotent-replayed')).toBe('true')
  expect(single.body.data.id).toBe(first.body.data[0].id)
  await expectCount(3, full)
})

/** At the end of October, with an idempotency key each. */
const atTheTurn = ['a', 'b', 'c', 'd', 'e'].map((key) => ({
  ...positive,
  metadata: { key },
  created_at: '2026-10-31T23:59:59.999Z',
  idempotency_key: key,
}))
const usedOf = async ({ org }: Tenant) => {
  const rows = await service.services.db.sql<{ month: string; used: number }>`
    select to_char(u.month, 'YYYY-MM') as month, u.used
    from signal_usage u join organisations o on o.id = u.organisation_id
    where o.public_id = ${org} order by 1`
  return Object.fromEntries(rows.map(({ month, used }) => [month, used]))
}

test('a batch sent again after the turn of the month replays what was recorded, and for 15 minutes records the rest in its month', async () => {
  const small = await service.createTenant(3)
  service.clock.set('2026-10-31T23:59:59.999Z')
  const first = await record(atTheTurn.slice(0, 2), small)
  const replayed = first.body.data.map((one: object) => ({ ...one, replayed: true }))
  service.clock.set('2026-11-01T00:15:00.000Z')
  const again = await record([...atTheTurn, positive], small)
  expect(again.body.data.slice(0, 2)).toEqual(replayed)
  expect(statusesOf(again)).toEqual([201, 201, 201, 429, 429, 201])
  expect(again.body.data[3].error).toMatchObject({ limit: 3, used: 3, resets_at: '2026-11-01T00:00:00.000Z' })
  expect(again.headers.get('ratelimit')).toStartWith('"signals";r=2;')
  expect(await usedOf(small)).toEqual({ '2026-10': 3, '2026-11': 1 })

  service.clock.set('2026-11-01T00:15:00.001Z')
  const unkeyed = { ...positive, created_at: '2026-10-31T23:59:59.999Z' }
  const late = await record([...atTheTurn, { ...atTheTurn[0], value: 'negative' }, unkeyed, positive], small)
  expect(late.body.data.slice(0, 2)).toEqual(replayed)
  expect(statusesOf(late)).toEqual([201, 201, 201, 422, 422, 422, 422, 201])
  expect(pathsOf(late).slice(3, 7)).toEqual(['/created_at', '/created_at', '/idempotency_key', '/created_at'])
  expect(await usedOf(small)).toEqual({ '2026-10': 3, '2026-11': 2 })
  // Signals of the month before do not make the service forget how full the current one is.
  expect(statusesOf(await record([positive, positive], small))).toEqual([201, 429])
})

test('without room in its month, a signal without a key is refused after the turn, however empty the current month is', async () => {
  const small = await service.createTenant(1)
  service.clock.set('2026-10-31T23:59:59.999Z')
  await record([positive], small)
  service.clock.set('2026-11-01T00:00:00.000Z')
  const unkeyed = { ...positive, created_at: '2026-10-31T23:59:59.999Z' }
  expect(statusesOf(await record([unkeyed], small))).toEqual([429])
  expect(statusesOf(await record([unkeyed, positive], small))).toEqual([429, 201])
  expect(await usedOf(small)).toEqual({ '2026-10': 1, '2026-11': 1 })
})

test('a key that was used for another signal is a 422, before the batch and within it', async () => {
  await record([{ ...positive, idempotency_key: 'old' }])
  const answer = await record([
    { value: 'negative', idempotency_key: 'old' },
    { ...positive, metadata: { n: 1 }, idempotency_key: 'new' },
    { ...positive, metadata: { n: 1 }, idempotency_key: 'new' },
    { ...positive, metadata: { n: 2 }, idempotency_key: 'new' },
    { value: 'negative', metadata: { n: 1 }, idempotency_key: 'new' },
  ])
  expect(statusesOf(answer)).toEqual([422, 201, 201, 422, 422])
  expect(answer.body.data[2]).toEqual({ ...answer.body.data[1], replayed: true })
  const reused = '/idempotency_key'
  expect(pathsOf(answer)).toEqual([reused, undefined, undefined, reused, reused])
  await expectCount(2)
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
  expect(await post(body)).toMatchObject(invalid(path))
  await expectCount(0)
})

test('the key of a signal of an earlier time is kept for as long as any other', async () => {
  const signals = [{ ...positive, created_at: '2026-11-02T00:00:00Z', idempotency_key: 'of long ago' }]
  const first = await record(signals)
  service.clock.set('2026-11-15T23:00:00.000Z')
  await pruneIdempotencyKeys(service.services.db, service.clock.now())
  expect((await record(signals)).body.data).toEqual([{ ...first.body.data[0], replayed: true }])
  await expectCount(1)
})

test('1,000 signals of 4 KB are one batch, plain and gzipped', async () => {
  const large = await service.createTenant(10_000)
  const signals = Array.from({ length: 1_000 }, (_, n) => ({ ...positive, metadata: { n, text: 'é"[{'.repeat(675) } }))
  const body = JSON.stringify({ signals })
  for (const answer of [
    await post(body, {}, large),
    await post(Bun.gzipSync(body), { 'content-encoding': 'gzip' }, large),
  ])
    expect(new Set(statusesOf(answer))).toEqual(new Set([201]))
  const kept = (await rowsOf(large)).map(({ metadata }) => JSON.parse(metadata as string))
  expect(kept).toEqual([...signals, ...signals].map(({ metadata }) => metadata))
})

test('a large batch is parsed signal by signal, also when all of it is numbers to be kept as sent', async () => {
  const signal = `{"value":"positive","metadata":{"list":[${'1.50,'.repeat(3_000)}1.50]}}`
  const parse = spyOn(JSON, 'parse')
  try {
    const items = await parseBatch(`{"signals":[${Array(20).fill(signal).join()}]}`, new Date(now))
    expect(items).toHaveLength(20)
    expect(items[19]).toMatchObject({ metadata: expect.stringContaining('1.50]}') })
    expect(Math.max(...parse.mock.calls.map(([text]) => text.length))).toBe(signal.length)
  } finally {
    parse.mockRestore()
  }
})

test('a signal with too many values is rejected, and does not fail the others', async () => {
  const huge = { ...positive, metadata: { list: Array(17_000).fill(1) } }
  const answer = await record([positive, huge, positive])
  expect(statusesOf(answer)).toEqual([201, 422, 201])
  expect(answer.body.data[1].error.details).toEqual([
    { path: '', message: 'must have at most 16384 values, nested at most 64 deep' },
  ])
  expect((await service.postSignal(tenant.prompt, tenant.key, huge)).body.error.details).toEqual(
    answer.body.data[1].error.details,
  )
})

test('of signals given twice the last list counts', async () => {
  const answer = await post(
    '{"signals":[{"value":"x"},{"value":"y"}],"\\u0073ignals":[{"value":"positive","metadata":{"a":[1,2]}}]}',
  )
  expect(statusesOf(answer)).toEqual([201])
  expect((await rowsOf(tenant))[0]?.metadata).toBe('{"a": [1, 2]}')
})

test('an Idempotency-Key for the whole batch is rejected, because it would protect nothing', async () => {
  const answer = await post(JSON.stringify({ signals: [positive] }), { 'idempotency-key': 'all' })
  expect(answer).toMatchObject(invalid('Idempotency-Key'))
  await expectCount(0)
})

test('a browser key cannot record batches', async () => {
  const { key } = await service.createKey(tenant, ['signals:write'], { origins: ['https://example.com'] })
  const answer = await record([positive], { ...tenant, key })
  expect(answer.status).toBe(403)
  await expectCount(0)
})

test('signals are accepted in order until the month is full, and the limit is exact', async () => {
  const small = await service.createTenant(4)
  const answer = await record([positive, { value: 'x' }, ...Array(5).fill(positive)], small)
  expect(statusesOf(answer)).toEqual([201, 422, 201, 201, 201, 429, 429])
  const single = await service.postSignal(small.prompt, small.key)
  const request_id = answer.headers.get('x-request-id')
  expect(answer.body.data[6]).toEqual({ status: 429, error: { ...single.body.error, request_id } })
  expect(answer.headers.get('ratelimit')).toStartWith('"signals";r=0;')
  expect(statusesOf(await record([positive, positive], small))).toEqual([429, 429])
  await expectCount(4, small)
})

test('batches and single signals that race share the limit exactly', async () => {
  const shared = await service.createTenant(50)
  const answers = await Promise.all(
    Array.from({ length: 24 }, (_, index) =>
      index % 2 ? record(Array(7).fill(positive), shared) : service.postSignal(shared.prompt, shared.key),
    ),
  )
  const statuses = answers.flatMap((answer) => (answer.status === 200 ? statusesOf(answer) : [answer.status]))
  expect(statuses.filter((status) => status === 201)).toHaveLength(50)
  expect(statuses.filter((status) => status === 429)).toHaveLength(12 * 7 + 12 - 50)
  await expectCount(50, shared)
})

test('while one organisation sends large batches without a pause, another waits for few of them', async () => {
  const [busy, calm] = [await service.createTenant(1_000_000), await service.createTenant(1_000_000)]
  const [senders, singles] = [4, 20]
  let batches = 0
  const sendBatch = async () => {
    // On a busy machine some come too late, which is a 503.
    await record(Array(500).fill(positive), busy)
    batches += 1
  }
  const sendSingles = async () => {
    for (let n = 0; n < singles; n += 1) {
      expect((await service.postSignal(calm.prompt, calm.key)).status).toBe(201)
    }
    // One that waited for its turn behind all senders would wait for as many batches.
    expect(batches).toBeLessThan((singles * senders) / 2)
  }
  const sending = sendSingles()
  await Promise.all(Array.from({ length: senders }, () => during(sending, sendBatch)))
})

test('a batch is recorded as a whole or not at all', async () => {
  const own = await service.createTenant(2_000)
  const { db } = service.services
  const { transaction } = db
  const failing = spyOn(db, 'transaction').mockImplementationOnce((work, ...rest) =>
    transaction(
      async (sql) => {
        await work(sql)
        throw unavailable('timeout')
      },
      ...rest,
    ),
  )
  const signals = Array(1_000).fill({ ...positive, metadata: { text: 'x'.repeat(1_000) } })
  expect((await record(signals, own)).status).toBe(503)
  failing.mockRestore()
  await expectCount(0, own)
  expect((await record(signals, own)).status).toBe(200)
  await expectCount(1_000, own)
})

test('beyond its share of bytes in flight an organisation gets an error immediately, and others do not', async () => {
  const [busy, calm] = [await service.createTenant(1_000_000), await service.createTenant(10)]
  const body = JSON.stringify({ signals: [{ ...positive, x: 'x'.repeat(4 * 1024 * 1024 - 200) }] })
  const sent = Array.from({ length: 12 }, () => post(body, {}, busy))
  const calmAnswer = await record([positive], calm)
  const answers = await Promise.all(sent)
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 503]))
  const rejected = answers.find(({ status }) => status === 503)
  expect(rejected?.headers.get('retry-after')).toBe('1')
  expect(rejected?.body.error.message).toBe('Too many large bodies are in flight. Try again shortly.')
  expect(calmAnswer.status).toBe(200)
  expect((await post(body, {}, busy)).status).toBe(200)
})
