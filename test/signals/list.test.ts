import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createKey } from '../../src/keys/manage.ts'
import { requirePrompt } from '../../src/prompts/find.ts'
import { startService, type Tenant, type TestService } from '../service.ts'

let service: TestService

beforeAll(async () => {
  service = await startService()
})

afterAll(() => service.close())

/** Records signals with one second between them, and returns their ids. */
async function record({ prompt, key }: Tenant, signals: object[], firstSecond = 0): Promise<number[]> {
  const ids: number[] = []
  for (const [index, signal] of signals.entries()) {
    service.clock.set(new Date(Date.UTC(2026, 10, 14, 12, 0, firstSecond + index)).toISOString())
    ids.push((await service.postSignal(prompt, key, signal)).body.data.id)
  }
  return ids
}

const list = ({ prompt, key }: Tenant, query = '') =>
  service.call('GET', `/api/v1/prompts/${prompt}/signals${query}`, { key })

const idsOf = ({ body }: { body: { data: { id: number }[] } }) => body.data.map(({ id }) => id)

/** Every page from the first on, by the links. */
async function readAll(tenant: Tenant, query: string): Promise<{ ids: number[]; pages: number }> {
  let address: string | undefined = `/api/v1/prompts/${tenant.prompt}/signals${query}`
  const ids: number[] = []
  let pages = 0
  while (address) {
    const answer: Awaited<ReturnType<typeof list>> = await service.call('GET', address, { key: tenant.key })
    expect(answer.status).toBe(200)
    ids.push(...idsOf(answer))
    pages += 1
    address = answer.headers.get('link')?.match(/^<(.+)>; rel="next"$/)?.[1]
    expect(address === undefined).toBe(answer.body.pagination.next_cursor === null)
  }
  return { ids, pages }
}

test('lists signals newest first, with the metadata as it was sent', async () => {
  const tenant = await service.createTenant()
  service.clock.set('2026-11-14T12:00:00.000Z')
  const post = (body: string) =>
    service.call('POST', `/api/v1/prompts/${tenant.prompt}/signals`, {
      key: tenant.key,
      body,
      headers: { 'content-type': 'application/json' },
    })
  await post('{"value":"negative","metadata":{"order":9007199254740993,"share":0.1000,"deep":{"a":[1,null]}}}')
  await post('{"value":"positive"}')
  const { status, text, body } = await list(tenant)
  const [second, first] = idsOf({ body })
  expect(status).toBe(200)
  expect(text).toBe(
    `{"data":[{"id":${second},"value":"positive","metadata":null,"created_at":"2026-11-14T12:00:00.000Z"},` +
      `{"id":${first},"value":"negative","metadata":{"deep": {"a": [1, null]}, "order": 9007199254740993, "share": 0.1000},` +
      '"created_at":"2026-11-14T12:00:00.000Z"}],"pagination":{"per_page":25,"next_cursor":null}}',
  )
})

test('pages have every signal once, while new ones arrive', async () => {
  const tenant = await service.createTenant()
  const ids = await record(
    tenant,
    Array.from({ length: 7 }, () => ({ value: 'positive' })),
  )
  const first = await list(tenant, '?limit=3')
  await record(tenant, [{ value: 'negative' }], 7)
  const second = await list(tenant, `?limit=3&cursor=${first.body.pagination.next_cursor}`)
  const third = await list(tenant, `?limit=3&cursor=${second.body.pagination.next_cursor}`)
  expect([first, second, third].flatMap(idsOf)).toEqual(ids.toReversed())
  expect(third.body.pagination).toEqual({ per_page: 3, next_cursor: null })
  expect(third.headers.get('link')).toBeNull()
})

test('filters by value, time and metadata', async () => {
  const tenant = await service.createTenant()
  const ids = await record(tenant, [
    { value: 'positive', metadata: { model: 'gpt-5', rating: 5 } },
    { value: 'negative', metadata: { model: 'gpt-5', rating: '5', flag: true } },
    { value: 'negative', metadata: { model: 'other', flag: null } },
    { value: 'positive' },
  ])
  const found = async (query: string) => (await readAll(tenant, query)).ids.map((id) => ids.indexOf(id))
  expect(await found('?value=negative')).toEqual([2, 1])
  expect(await found('?since=2026-11-14T12:00:01Z&until=2026-11-14T12:00:03Z')).toEqual([2, 1])
  expect(await found('?since=2026-11-15')).toEqual([])
  expect(await found('?metadata.model=gpt-5')).toEqual([1, 0])
  expect(await found('?metadata.rating=5')).toEqual([1, 0])
  expect(await found('?metadata.flag=true')).toEqual([1])
  expect(await found('?metadata.flag=null')).toEqual([2])
  expect(await found('?metadata.model=gpt-5&metadata.flag=true&value=negative')).toEqual([1])
  expect(await found('?metadata.none=')).toEqual([])
})

test('a filter looks at a bounded number of signals, and goes on over empty pages', async () => {
  const tenant = await service.createTenant(100_000)
  const [wanted] = await record(tenant, [{ value: 'negative', metadata: { model: 'rare' } }])
  await service.services.db.sql`
    insert into signals (organisation_id, prompt_id, value, created_at)
    select p.organisation_id, p.id, 'positive', '2026-11-14T13:00:00Z'::timestamptz + n * interval '1 ms'
    from prompts p, generate_series(1, 12000) n
    where p.public_id = ${tenant.prompt}`
  expect(await readAll(tenant, '?metadata.model=rare')).toEqual({ ids: [wanted as number], pages: 3 })
  expect(await readAll(tenant, '?value=negative&limit=1')).toEqual({ ids: [wanted as number], pages: 3 })
})

test('a range of time long ago is found by the index, without a walk over what came later', async () => {
  const { prompt, key } = await service.createTenant()
  const { db } = service.services
  const { id, organisationId } = await requirePrompt(db.sql, prompt)
  await db.sql`
    insert into signals (organisation_id, prompt_id, value, created_at)
    select ${organisationId}, ${id}, 'positive', '2026-11-01T00:00:00Z'::timestamptz + n * interval '1 second'
    from generate_series(0, 19999) n`
  const until = '2026-11-01T00:00:10Z'
  // With the first calls the blocks of the catalogue are read, which are no part of the range.
  const blocksRead: number[] = []
  for (let call = 1; call <= 3; call += 1) {
    const [row] = await db.sql<{ 'QUERY PLAN': [{ Plan: Record<string, number> }] }>`
      explain (analyze, buffers, format json)
      select * from list_signals(${id}, ${until}::text::timestamptz, 0, '-infinity', null, '{}', '{}', 26, 5000)`
    const plan = row?.['QUERY PLAN'][0].Plan
    blocksRead.push(Number(plan?.['Shared Hit Blocks']) + Number(plan?.['Shared Read Blocks']))
  }
  expect(Math.min(...blocksRead)).toBeLessThan(20)
  expect((await list({ prompt, key } as Tenant, `?until=${until}`)).body.data).toHaveLength(10)
})

test.each([
  ['value=neutral', 'value', 'must be positive or negative, and given once'],
  ['value=positive&value=positive', 'value', 'must be positive or negative, and given once'],
  [
    'since=yesterday',
    'since',
    'must be an ISO 8601 time with its zone, as 2026-11-14T23:35:00Z, or a date, and given once',
  ],
  ['since=2026-11-02&until=2026-11-01', 'since', 'must be before until'],
  ['metadata.=x', 'metadata.', 'must be metadata. and the name of a top-level field'],
  ['metadata.a=%00', 'metadata.a', 'must be a text, and given once'],
  ['metadata.a=1&metadata.a=2', 'metadata.a', 'must be a text, and given once'],
  [
    'metadata.a=1&metadata.b=1&metadata.c=1&metadata.d=1&metadata.e=1&metadata.f=1',
    'metadata.f',
    'must be one of at most 5 metadata filters',
  ],
  ['cursor=x', 'cursor', 'must be the next_cursor of an earlier page'],
  ['cursor=', 'cursor', 'must be the next_cursor of an earlier page'],
])('?%s is rejected with the name of %p', async (query, path, message) => {
  const tenant = await service.createTenant()
  const { status, body } = await list(tenant, `?${query}`)
  expect([status, body.error.details]).toEqual([422, [{ path, message }]])
})

test('a cursor is good for its own list alone, reveals nothing, and works on every replica', async () => {
  const tenant = await service.createTenant()
  const other = await service.createTenant()
  const signals = Array.from({ length: 3 }, () => ({ value: 'positive', metadata: { a: '1' } }))
  const ids = await record(tenant, signals)
  await record(other, signals)
  const cursorOf = async (of: Tenant, query: string) => (await list(of, query)).body.pagination.next_cursor as string
  const cursor = await cursorOf(tenant, '?limit=1')
  const filtered = await cursorOf(tenant, '?limit=1&value=positive')
  const forged = (cursor[0] === 'A' ? 'B' : 'A') + cursor.slice(1)
  const rejected = [
    [tenant, `?cursor=${await cursorOf(other, '?limit=1')}`],
    [tenant, `?cursor=${filtered}`],
    [tenant, `?value=positive&cursor=${cursor}`],
    [tenant, `?cursor=${forged}`],
    [tenant, `?cursor=${cursor}&cursor=${cursor}`],
    [tenant, `?cursor=${cursor}%20`],
    [other, `?cursor=${cursor}`],
  ] as const
  for (const [of, query] of rejected) {
    const { status, body } = await list(of, query)
    expect([query, status, body.error?.details?.[0].path]).toEqual([query, 422, 'cursor'])
  }
  // Two cursors of one place look different and have one length.
  expect(await cursorOf(tenant, '?limit=1')).not.toBe(cursor)
  expect(cursor).toHaveLength(59)
  expect(filtered).toHaveLength(59)
  expect(idsOf(await list(tenant, `?cursor=${cursor}`))).toEqual(ids.toReversed().slice(1))
})

test('needs the scope signals:read', async () => {
  const { org, prompt } = await service.createTenant()
  const { db } = service.services
  const { key } = await createKey(db, service.clock, { org, name: 'app', expiresAt: null, scopes: ['signals:write'] })
  const { status, body } = await service.call('GET', `/api/v1/prompts/${prompt}/signals`, { key })
  expect([status, body.error.scope]).toEqual([403, 'signals:read'])
})
