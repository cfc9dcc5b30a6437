// Signals with a subject: a later one replaces the earlier one, or it is withdrawn.
import { beforeEach, expect, test } from 'bun:test'
import { monthOf } from '../../src/lib/months.ts'
import { requirePrompt } from '../../src/prompts/find.ts'
import { createPastRecorder, importSignals } from '../../src/signals/import.ts'
import { writeSignals } from '../../src/signals/store.ts'
import type { PastSignal } from '../../src/signals/store_bulk.ts'
import { type Answer, type Client, invalid } from '../client.ts'
import { createBrowserKey, SHOP, usedBy } from '../keys/pages.ts'
import type { Tenant } from '../service.ts'
import { useAdmin, useNewTenant, useService } from '../use.ts'
import { countOf, exportSignalsOf, postBatch, postText, signalsIn, startReplica } from './fixtures.ts'

const [now, later] = ['2026-11-14T12:00:00.000Z', '2026-11-14T12:20:00.000Z']
const service = useService()
beforeEach(() => service.clock.set(now))
const tenant = useNewTenant(service, 2)
const admin = useAdmin(service, tenant, beforeEach)

type Vote = { value?: string; metadata?: object; subject?: unknown }

const vote = (
  given: Vote,
  headers: Record<string, string> = {},
  { key }: { key: string } = tenant,
  client: Client = service,
) => client.post(`/prompts/${tenant.prompt}/signals`, key, { value: 'positive', subject: 'a1', ...given }, headers)

const withdraw = (query = 'subject=a1', key = tenant.key, headers = {}) =>
  service.delete(`/prompts/${tenant.prompt}/signals?${query}`, key, headers)

const list = async (of: Tenant = tenant) => (await service.get(`/prompts/${of.prompt}/signals`, of.key)).body.data

const shortly = ({ status, body, headers }: Answer) => ({
  status,
  ...(body.data ?? { error: body.error.code }),
  ...(headers.has('idempotent-replayed') && { isReplay: true }),
})

test('a vote takes metadata that differs only in how a number is written', async () => {
  for (const version of ['0.1', '0.10'])
    await postText(service, tenant, `{"value":"positive","subject":"a1","metadata":{"version":${version}}}`)
  const { text } = await service.get(`/prompts/${tenant.prompt}/signals`, tenant.key)
  expect(text).toContain('"version": 0.10')
})

test('a later vote replaces the first one, keeps its id and time and is not counted, and may be withdrawn', async () => {
  const first = await vote({ metadata: { reason: 'kind' } })
  const { id } = first.body.data
  expect(shortly(first)).toEqual({ status: 201, id, value: 'positive', created_at: now })
  service.clock.set(later)
  const other = await vote({ subject: 'a2' })
  const replaced = { status: 200, id, created_at: now, replaced: true }
  // The month is full.
  expect(shortly(await vote({ subject: 'a3' }))).toEqual({ status: 429, error: 'rate_limited' })
  for (const [value, metadata] of [
    ['negative', { reason: 'wrong' }],
    ['negative', { reason: 'wrong' }],
    ['negative', null],
  ] as const) {
    expect(shortly(await vote({ value, ...(metadata && { metadata }) }))).toEqual({ ...replaced, value })
    const [second, shown] = await list()
    expect(second).toEqual({
      id: other.body.data.id,
      value: 'positive',
      metadata: null,
      created_at: later,
      subject: 'a2',
    })
    expect(shown).toEqual({ id, value, metadata, created_at: now, subject: 'a1' })
  }
  expect(await countOf(service, tenant)).toEqual({ rows: 2, used: 2 })
  expect(shortly(await withdraw())).toEqual({ status: 200, id })
  expect((await withdraw()).status).toBe(404)
  expect((await list()).map(({ subject }: Vote) => subject)).toEqual(['a2'])
  expect(shortly(await vote({}))).toEqual({ status: 429, error: 'rate_limited' })
})

test('a mind may change for 90 days, and the subject of another prompt is another one', async () => {
  const { id } = (await vote({})).body.data
  const prompt = await service.createPrompt(tenant, 'other')
  expect(
    (await service.post(`/prompts/${prompt}/signals`, tenant.key, { value: 'positive', subject: 'a1' })).status,
  ).toBe(201)
  service.clock.set('2027-02-12T11:59:59.999Z')
  expect((await vote({ value: 'negative' })).body.data).toMatchObject({ id, replaced: true })
  service.clock.set('2027-02-12T12:00:00.000Z')
  expect((await withdraw()).status).toBe(404)
  const again = await vote({})
  expect([again.status, again.body.data.id === id]).toEqual([201, false])
  expect((await list()).map(({ value }: Vote) => value)).toEqual(['positive', 'negative'])
  expect((await withdraw()).body.data.id).toBe(again.body.data.id)
})

test('with an Idempotency-Key, a replay answers as the first time although the vote has changed', async () => {
  const [up, down] = [{ 'idempotency-key': 'up' }, { 'idempotency-key': 'down' }]
  const answers = [await vote({}, up), await vote({ value: 'negative', metadata: { b: 1, a: 2 } }, down)]
  await vote({ metadata: { c: 3 } })
  const replays = [await vote({}, up), await vote({ value: 'negative', metadata: { a: 2, b: 1 } }, down)]
  expect(replays.map(shortly)).toEqual(answers.map((answer) => ({ ...shortly(answer), isReplay: true })))
  expect(answers.map(({ status }) => status)).toEqual([201, 200])
  for (const [given, key] of [
    [{ value: 'negative' }, up],
    [{ metadata: { c: 3 } }, up],
    [{ subject: 'a2' }, up],
    [{ subject: undefined }, up],
    [{}, down],
    [{ value: 'negative', metadata: { a: 2, b: [[1]] } }, down],
  ] as const) {
    expect(await vote(given, key)).toMatchObject(invalid('Idempotency-Key'))
  }
  expect(await list()).toMatchObject([{ value: 'positive', metadata: { c: 3 } }])
  const spelt = { 'content-type': 'application/json', ...down }
  const body = '{"subject":"a1","value":"negative","metadata":{"a":2.0,"b":1e0}}'
  const replay = await service.call('POST', `/api/v1/prompts/${tenant.prompt}/signals`, {
    key: tenant.key,
    headers: spelt,
    body,
  })
  expect(shortly(replay)).toMatchObject({ status: 200, isReplay: true })
  const keyed = { 'idempotency-key': 'without' }
  expect((await vote({ subject: undefined }, keyed)).status).toBe(201)
  expect(await vote({ subject: 'a1' }, keyed)).toMatchObject(invalid('Idempotency-Key'))
})

test('of a batch, the last signal with a subject counts, and each has its own result', async () => {
  const { id } = (await vote({})).body.data
  const signals = [
    { value: 'negative', subject: 'a1', idempotency_key: 'k1' },
    { value: 'negative', subject: 'b', idempotency_key: 'k2' },
    { value: 'maybe', subject: 'b' },
    { value: 'positive', subject: 'b', metadata: { n: 1 } },
    { value: 'positive', subject: 'b', metadata: { n: 2 }, idempotency_key: 'k3' },
    { value: 'positive', subject: 'c' },
    { value: 'positive', subject: 'c', metadata: { n: 3 } },
  ]
  const { body } = await postBatch(service, tenant, signals)
  const b = body.data[1].id
  const replaced = { status: 200, id: b, created_at: now, replaced: true }
  expect(
    body.data.map(({ error, ...shown }: { error?: { code: string } }) => ({
      ...shown,
      ...(error && { error: error.code }),
    })),
  ).toEqual([
    { ...replaced, id },
    { status: 201, id: b, created_at: now },
    { status: 422, error: 'validation_error' },
    replaced,
    replaced,
    { status: 429, error: 'rate_limited' },
    { status: 429, error: 'rate_limited' },
  ])
  const expected = [
    { id: b, value: 'positive', metadata: { n: 2 }, created_at: now, subject: 'b' },
    { id, value: 'negative', metadata: null, created_at: now, subject: 'a1' },
  ]
  expect(await list()).toEqual(expected)
  await vote({ subject: 'b' })
  const again = await postBatch(service, tenant, [signals[1], signals[4], signals[0]])
  expect(again.body.data).toEqual([body.data[1], body.data[4], body.data[0]].map((one) => ({ ...one, replayed: true })))
  expect(await countOf(service, tenant)).toEqual({ rows: 2, used: 2 })
})

test('of a write, the last signal with a subject counts, also when its prompt was looked up again since', async () => {
  const { db, clock } = service.services
  const createdAt = clock.now()
  const known = await requirePrompt(db.sql, tenant.prompt)
  const again = { ...known }
  await vote({})
  for (const prompts of [
    [known, again],
    [known, again, known],
  ]) {
    const signals = prompts.map((prompt, n) => {
      const more = { createdAt, month: monthOf(createdAt), idempotencyKey: null, browserKey: null, subject: 'a1' }
      return { prompt, value: 'negative' as const, metadata: `{"n":${n}}`, ...more }
    })
    const results = await writeSignals(db.sql, signals)
    expect(results.map(({ outcome }) => outcome)).toEqual(prompts.map(() => 'replaced'))
    expect(await list()).toMatchObject([{ metadata: { n: prompts.length - 1 } }])
  }
})

test('a signal of a closed month, which is rejected, does not hide the vote of today', async () => {
  const { id } = (await vote({})).body.data
  const closed = { value: 'positive', subject: 'a1', created_at: '2026-05-01T00:00:00Z', idempotency_key: 'old' }
  const { body } = await postBatch(service, tenant, [closed, { value: 'negative', subject: 'a1' }])
  expect(body.data).toMatchObject([{ status: 422 }, { status: 200, id, replaced: true }])
  expect(await countOf(service, tenant)).toEqual({ rows: 1, used: 1 })
})

test('votes that race on two replicas are one signal, whose last vote each of them answered', async () => {
  const replica = await startReplica(service)
  const values = ['positive', 'negative'] as const
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, n) =>
      vote({ value: values[n % 2] as string, metadata: { n } }, {}, tenant, n % 3 ? replica : service),
    ),
  )
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
  expect(new Set(answers.map(({ body }) => body.data.id)).size).toBe(1)
  const [{ value, metadata }] = await list()
  expect(value).toBe(values[metadata.n % 2])
  expect(await countOf(service, tenant)).toEqual({ rows: 1, used: 1 })
})

test('a browser key replaces and withdraws only what was sent with it or its rotations, and counts a vote once', async () => {
  const [page, other] = [
    await createBrowserKey(service, admin.key, { monthly_limit: 1 }),
    await createBrowserKey(service, admin.key),
  ]
  const { id } = (await vote({}, {}, page)).body.data
  const rotated = (await service.post(`/keys/${page.id}/rotate`, admin.key, {})).body.data
  expect((await vote({ value: 'negative' }, { origin: SHOP }, rotated)).body.data).toMatchObject({ id, replaced: true })
  expect((await withdraw('subject=a1', other.key)).status).toBe(404)
  expect((await withdraw()).status).toBe(404)
  expect((await vote({})).status).toBe(201)
  expect(await usedBy(service, page.id)).toBe(1)
  expect((await list()).map(({ value, subject }: Vote) => [value, subject])).toEqual([
    ['positive', 'a1'],
    ['negative', 'a1'],
  ])
  const withdrawn = await withdraw('subject=a1', page.key, { origin: SHOP })
  expect([shortly(withdrawn), withdrawn.headers.get('access-control-allow-origin')]).toEqual([
    { status: 200, id },
    SHOP,
  ])
  expect((await withdraw('metadata.a=b', page.key)).body.error).toMatchObject({
    code: 'forbidden',
    scope: 'signals:delete',
  })
})

test.each([[''], ['x'.repeat(256)], ['a\nb'], ['\u0085'], ['\ud800'], [1], [null]])(
  'the subject %p is rejected',
  async (subject) => {
    expect(await vote({ subject })).toMatchObject(invalid('/subject'))
    const { body } = await postBatch(service, tenant, [{ value: 'positive', subject }])
    expect(body.data[0].error.details[0].path).toBe('/subject')
  },
)

test.each([
  ['', 'subject'],
  ['subject=', 'subject'],
  ['subject=a%09b', 'subject'],
  [`subject=${'x'.repeat(256)}`, 'subject'],
  ['subject=a&subject=b', 'subject'],
  ['subject=a1&metadata.user=b', 'subject'],
  ['metadata.user=', 'metadata.user'],
  ['metadata.=a', 'metadata.'],
  ['metadata.user=a&cursor=x', 'cursor'],
  ['metadata.user=a&since=2026-11-14', 'since'],
  ['subject=a1&value=negative', 'value'],
])('withdrawing %p is a 422 that names the field', async (query, path) => {
  const { status, body } = await withdraw(query, admin.key)
  expect([status, body.error?.details.map((one: { path: string }) => one.path)]).toEqual([
    422,
    expect.arrayContaining([path]),
  ])
})

test('an export has the subjects as they were sent, no cell that a spreadsheet would run, and is known to an import', async () => {
  await vote({ subject: '=1+"ü😀"' })
  await vote({ subject: "'x" }, {}, await createBrowserKey(service, admin.key))
  const lines = signalsIn(await exportSignalsOf(service, admin.key, tenant.prompt))
  expect(lines.map(({ subject }) => subject)).toEqual(['=1+"ü😀"', "'x"])
  const csv = await exportSignalsOf(service, admin.key, tenant.prompt, '?format=csv')
  expect(csv.text.split('\r\n').map((line) => line.split(',').at(-1))).toEqual([
    'subject',
    `"'=1+""ü😀"""`,
    `"''x"`,
    '',
  ])
  const { db } = service.services
  const prompt = await requirePrompt(db.sql, tenant.prompt)
  const record = (given: PastSignal[]) => createPastRecorder(db, service.clock.now(), prompt)(given)
  const past = lines.map(({ value, subject }) => ({ value, subject, metadata: null, createdAt: new Date(now) }))
  const another = { value: 'positive' as const, metadata: null, createdAt: new Date('2026-10-01') }
  const later = new Date(Date.parse(now) + 1)
  const changed = past.map((one) => ({ ...one, value: 'negative' as const, createdAt: later }))
  expect(await record([...past, another])).toEqual({ recorded: 1, known: 2, refused: 0 })
  // The vote of the page is another one.
  expect(await record([...changed, another])).toEqual({ recorded: 0, known: 2, refused: 1 })
  expect((await list()).map(({ value }: Vote) => value)).toEqual(['positive', 'negative', 'positive'])
})

test('an import of an export leaves votes that changed since, and those of other senders with the same subject', async () => {
  const page = await createBrowserKey(service, admin.key)
  await vote({ value: 'positive' })
  service.clock.set(later)
  await vote({ value: 'negative' }, {}, page)
  const lines = signalsIn(await exportSignalsOf(service, admin.key, tenant.prompt))
  const prompt = await requirePrompt(service.services.db.sql, tenant.prompt)
  for (const change of [undefined, { value: 'negative', metadata: { reason: 'wrong' } }]) {
    if (change) await vote(change)
    const expected = await list()
    const record = createPastRecorder(service.services.db, service.clock.now(), prompt)
    for (const { value, metadata, created_at, subject } of lines) {
      const past = { value, metadata, subject, createdAt: new Date(created_at) } as PastSignal
      expect(await record([past])).toEqual({ recorded: 0, known: 1, refused: 0 })
    }
    expect(await list()).toEqual(expected)
  }
})

test('an import repeated has the votes as the first one had, and tells them from signals without a subject', async () => {
  const { db } = service.services
  const prompt = await requirePrompt(db.sql, tenant.prompt)
  const given = [
    ['2026-01-01', 'positive', 's'],
    ['2026-03-20', 'negative', 's'],
    ['2026-06-10', 'positive', 's'],
    ['2026-06-10', 'positive', undefined],
  ] as const
  for (const [recorded, known] of [
    [3, 1],
    [0, 4],
  ]) {
    const record = createPastRecorder(db, service.clock.now(), prompt)
    const counts = { recorded: 0, known: 0 }
    for (const [day, value, subject] of given) {
      const one = await record([{ value, subject, metadata: null, createdAt: new Date(day) }])
      counts.recorded += one.recorded
      counts.known += one.known
    }
    expect(counts).toEqual({ recorded: recorded as number, known: known as number })
    expect((await list()).map((one: Vote & { created_at: string }) => [one.value, one.created_at])).toEqual([
      ['positive', '2026-06-10T00:00:00.000Z'],
      ['positive', '2026-06-10T00:00:00.000Z'],
      ['negative', '2026-01-01T00:00:00.000Z'],
    ])
  }
})

test('an import leaves a vote alone that is later than its line', async () => {
  const { db } = service.services
  const prompt = await requirePrompt(db.sql, tenant.prompt)
  const record = createPastRecorder(db, service.clock.now(), prompt)
  for (const [day, value, expected] of [
    ['2026-06-12', 'negative', 'negative'],
    ['2026-06-10', 'positive', 'negative'],
    ['2026-06-14', 'positive', 'positive'],
  ] as const) {
    await record([{ value, subject: 's', metadata: null, createdAt: new Date(day) }])
    expect((await list()).map((one: Vote) => one.value)).toEqual([expected])
  }
})

test.each([
  ['as a whole', 0, 3],
  ['after an interruption after one write', 1, 1],
  ['after an interruption after two writes', 2, 1],
])('an import of equal lines at one time, with votes between them, has each once: %s', async (_, writes, recorded) => {
  const { db, rollup } = service.services
  const prompt = await requirePrompt(db.sql, tenant.prompt)
  const read = async function* () {
    for (const subject of [undefined, 'x', 'x', 'x', undefined]) {
      yield { value: 'positive' as const, subject, metadata: null, createdAt: new Date('2026-01-01') }
    }
  }
  const interruption = new Error('interrupted')
  let left = writes
  const stop = () => {
    left -= 1
    if (left === 0) throw interruption
  }
  const importAll = () => importSignals(db, service.clock.now(), rollup, prompt, read, stop)
  if (writes > 0) expect(await importAll().catch((error) => error)).toBe(interruption)
  expect(await importAll()).toEqual({ recorded, known: 5 - recorded, refused: 0 })
  expect(await importAll()).toEqual({ recorded: 0, known: 5, refused: 0 })
  expect((await list()).map(({ subject }: Vote) => subject)).toEqual([undefined, 'x', undefined])
})

test('lines imported again with their subjects are known, each once', async () => {
  const { db } = service.services
  const prompt = await requirePrompt(db.sql, tenant.prompt)
  const one = { value: 'positive' as const, metadata: '{"a":1.0}', createdAt: new Date('2026-01-01') }
  const record = (subjects: (string | null)[]) =>
    createPastRecorder(db, service.clock.now(), prompt)(subjects.map((subject) => ({ ...one, subject })))
  expect(await record([null, null])).toEqual({ recorded: 2, known: 0, refused: 0 })
  for (const recorded of [2, 0]) {
    const known = 4 - recorded
    expect(await record(['a', 'b', 'c', 'd'])).toEqual({ recorded, known, refused: 0 })
  }
  expect(await record([null, null, null])).toEqual({ recorded: 1, known: 2, refused: 0 })
  expect((await list()).map(({ subject }: Vote) => subject)).toEqual([undefined, 'd', 'c', undefined, undefined])
})

test('all signals of a person are erased by their metadata, with their keys and subjects, and the log does not name the person', async () => {
  const own = await service.createTenant(10_000)
  const { key, id: actor } = await service.createKey(own, ['signals:delete', 'signals:read', 'keys:read'])
  const user = 'u 123'
  const erase = (query: string) => service.delete(`/prompts/${own.prompt}/signals?${query}`, key)
  const signals = Array.from({ length: 1_000 }, (_, n) => ({
    value: 'positive',
    metadata: { user: n % 5 ? 'other' : user },
  }))
  const person = { value: 'negative', metadata: { user, a: 1 }, subject: 's', idempotency_key: 'k' }
  for (const batch of [[person], ...Array(6).fill(signals)]) await postBatch(service, own, batch)
  let [erased, query] = [0, `metadata.user=${encodeURIComponent(user)}`]
  for (let cursor: string | null = '', rounds = 0; cursor !== null; rounds += 1) {
    expect(rounds).toBeLessThan(10)
    const { status, body } = await erase(`${query}${cursor && `&cursor=${cursor}`}`)
    expect(status).toBe(200)
    erased += body.data.erased
    cursor = body.data.next_cursor
  }
  expect(erased).toBe(1_201)
  expect((await service.get(`/prompts/${own.prompt}/stats`, key)).body.totals).toMatchObject({
    total: 4_800,
    negative: 0,
  })
  const audit = await service.get('/audit', key)
  const purges = audit.body.data.filter(({ action }: { action: string }) => action === 'signals.purged')
  expect(purges.reduce((sum: number, { details }: { details: { erased: number } }) => sum + details.erased, 0)).toBe(
    1_201,
  )
  expect(purges[0]).toMatchObject({ actor, subject: own.prompt, details: { metadata: ['user'] } })
  expect(audit.text).not.toContain(user)
  query = 'metadata.user=nobody'
  expect((await erase(query)).body.data).toEqual({ erased: 0, next_cursor: null })
  const [again] = (await postBatch(service, own, [person])).body.data
  expect([again.status, again.replayed]).toEqual([201, undefined])
})
