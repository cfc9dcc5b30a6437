import { expect, test } from 'bun:test'
import { invalid } from '../client.ts'
import { addSignals, deployed } from '../impact/history.ts'
import type { Tenant } from '../service.ts'
import { useNewTenant, useService } from '../use.ts'
import { fillEvery, postText, startReplica } from './fixtures.ts'

const service = useService()
const tenant = useNewTenant(service)

/** Records signals with one second between them, and returns their ids. */
async function record(signals: object[], firstSecond = 0, { prompt, key } = tenant): Promise<number[]> {
  const ids: number[] = []
  for (const [index, signal] of signals.entries()) {
    service.clock.set(new Date(Date.UTC(2026, 10, 14, 12, 0, firstSecond + index)).toISOString())
    ids.push((await service.postSignal(prompt, key, signal)).body.data.id)
  }
  return ids
}

const list = (query = '', { prompt, key } = tenant) => service.get(`/prompts/${prompt}/signals${query}`, key)

const idsOf = ({ body }: { body: { data: { id: number }[] } }) => body.data.map(({ id }) => id)

async function readAll(query: string): Promise<{ ids: number[]; pages: number }> {
  const ids: number[] = []
  let pages = 0
  for (let address = `/api/v1/prompts/${tenant.prompt}/signals${query}`; address; pages += 1) {
    const { status, body, headers } = await service.call('GET', address, { key: tenant.key })
    expect(status).toBe(200)
    ids.push(...idsOf({ body }))
    address = headers.get('link')?.match(/^<(.+)>; rel="next"$/)?.[1] ?? ''
    expect(address === '').toBe(body.pagination.next_cursor === null)
  }
  return { ids, pages }
}

test('lists signals newest first, with the metadata as it was sent', async () => {
  service.clock.set('2026-11-14T12:00:00.000Z')
  const metadata = '{"order":9007199254740993,"share":0.1000,"deep":{"a":[1,null]}}'
  await postText(service, tenant, `{"value":"negative","metadata":${metadata}}`)
  await postText(service, tenant, '{"value":"positive"}')
  const { status, text, body } = await list()
  const [second, first] = idsOf({ body })
  expect(status).toBe(200)
  expect(text).toBe(
    `{"data":[{"id":${second},"value":"positive","metadata":null,"created_at":"2026-11-14T12:00:00.000Z"},` +
      `{"id":${first},"value":"negative","metadata":{"deep": {"a": [1, null]}, "order": 9007199254740993, "share": 0.1000},` +
      '"created_at":"2026-11-14T12:00:00.000Z"}],"pagination":{"per_page":25,"next_cursor":null}}',
  )
})

test('pages have every signal once, while new ones arrive', async () => {
  const ids = await record(Array(7).fill({ value: 'positive' }))
  const first = await list('?limit=3')
  await record([{ value: 'negative' }], 7)
  const second = await list(`?limit=3&cursor=${first.body.pagination.next_cursor}`)
  const third = await list(`?limit=3&cursor=${second.body.pagination.next_cursor}`)
  expect([first, second, third].flatMap(idsOf)).toEqual(ids.toReversed())
  expect(third.body.pagination).toEqual({ per_page: 3, next_cursor: null })
  expect(third.headers.get('link')).toBeNull()
})

test('filters by value, time and metadata', async () => {
  const ids = await record([
    { value: 'positive', metadata: { model: 'gpt-5', rating: 5 } },
    { value: 'negative', metadata: { model: 'gpt-5', rating: '5', flag: true } },
    { value: 'negative', metadata: { model: 'other', flag: null } },
    { value: 'positive', metadata: { reasons: ['Clear', 'Short', 5] } },
  ])
  const found = async (query: string) => (await readAll(query)).ids.map((id) => ids.indexOf(id))
  expect(await found('?value=negative')).toEqual([2, 1])
  expect(await found('?since=2026-11-14T12:00:01Z&until=2026-11-14T12:00:03Z')).toEqual([2, 1])
  expect(await found('?since=2026-11-15')).toEqual([])
  expect(await found('?metadata.model=gpt-5')).toEqual([1, 0])
  expect(await found('?metadata.rating=5')).toEqual([1, 0])
  expect(await found('?metadata.flag=true')).toEqual([1])
  expect(await found('?metadata.flag=null')).toEqual([2])
  expect(await found('?metadata.model=gpt-5&metadata.flag=true&value=negative')).toEqual([1])
  expect(await found('?metadata.reasons=Short')).toEqual([3])
  expect(await found('?metadata.reasons=5')).toEqual([3])
  expect(await found('?metadata.reasons=05')).toEqual([])
  expect(await found('?metadata.model="other"')).toEqual([])
  expect(await found('?metadata.none=')).toEqual([])
})

test('a filter tells numbers apart as they are listed, also in lists, and erases no other signal', async () => {
  const { key } = await service.createKey(tenant, ['signals:delete'])
  for (const version of ['0.1', '0.10', '"0.1"', '[1, 0.1]', '["0.10"]', '[0.10, null]', '{"a":0.1}', '[[0.1]]']) {
    await postText(service, tenant, `{"value":"positive","metadata":{"version":${version}}}`)
  }
  const versionsIn = (text: string) => [...text.matchAll(/"version": (.+?)},"created/g)].map(([, version]) => version)
  const found = async (version: string) => versionsIn((await list(`?metadata.version=${version}`)).text)
  expect(await found('0.1')).toEqual(['[1, 0.1]', '"0.1"', '0.1'])
  expect(await found('0.10')).toEqual(['[0.10, null]', '["0.10"]', '0.10'])
  expect(await found('0.100')).toEqual([])
  expect(await found('null')).toEqual(['[0.10, null]'])
  const erased = await service.delete(`/prompts/${tenant.prompt}/signals?metadata.version=0.1`, key)
  expect(erased.body.data).toEqual({ erased: 3, next_cursor: null })
  expect(versionsIn((await list()).text)).toEqual(['[[0.1]]', '{"a": 0.1}', '[0.10, null]', '["0.10"]', '0.10'])
})

test('a filter examines a bounded number of signals, and continues over empty pages', async () => {
  const [wanted] = await record([{ value: 'negative', metadata: { model: 'rare' } }])
  await fillEvery(service, tenant.prompt, '2026-11-14T13:00:00Z', 12_000, 0.001)
  expect(await readAll('?metadata.model=rare')).toEqual({ ids: [wanted as number], pages: 3 })
  expect(await readAll('?value=negative&limit=1')).toEqual({ ids: [wanted as number], pages: 3 })
})

test('the signals of a change are found on their days, however far apart and among however many others', async () => {
  const commit = 'a'.repeat(40)
  await service.addHistory(tenant.prompt, [
    deployed(commit, '2026-10-01T00:00:00Z'),
    deployed('b'.repeat(40), '2026-11-01T00:00:00Z'),
    deployed(commit, '2026-11-10T18:00:00Z'),
  ])
  const [rollback, , change] = (await service.get(`/prompts/${tenant.prompt}/impact`, tenant.key)).body.data
  const days = ['10-02', '10-09', '10-10', '11-02', '11-04', '11-06', '11-08', '11-10']
  const times = [...days.map((day) => `2026-${day}T12:00:00Z`), '2026-11-10T20:00:00Z']
  await addSignals(
    service,
    tenant.prompt,
    times.map((at) => ({ value: 'positive', commit, at })),
  )
  await fillEvery(service, tenant.prompt, '2026-11-11T00:00:00Z', 12_000, 60)
  const ids = (await readAll(`?change=${change.change.id}`)).ids
  const [afterRollback, ...before] = idsOf(await list('?until=2026-11-11&limit=100'))
  expect(before).toEqual(ids)
  expect((await readAll(`?change=${change.change.id}`)).pages).toBe(2)
  expect((await readAll(`?change=${change.change.id}&since=2026-10-10&until=2026-11-05`)).ids).toEqual(ids.slice(3, 6))
  expect(idsOf(await list(`?change=${rollback.change.id}&limit=2`))).toEqual(idsOf(await list('?limit=2')))
  expect(idsOf(await list(`?change=${rollback.change.id}&until=2026-11-11`))).toEqual([afterRollback as number])
  const wrong = 'must be the id of a change of this prompt, as its impact lists them'
  expect(await list(`?change=${change.change.id + 1_000}`)).toMatchObject(invalid(['change', wrong]))
})

const noTime = 'must be an ISO 8601 time with its zone, such as 2026-11-14T23:35:00Z, or a date'
const noCursor = 'must be the next_cursor of an earlier page of this list, with the same filters'
const sixFilters = [...'abcdef'].map((name) => `metadata.${name}=1`).join('&')

test.each([
  ['value=neutral', 'value', 'must be one of positive, negative'],
  ['value=positive&value=positive', 'value', 'must be given only once'],
  ['change=a', 'change', 'must be the id of a history entry'],
  ['since=yesterday', 'since', noTime],
  ['since=2026-11-02&until=2026-11-01', 'since', 'must be before until'],
  ['metadata.=x', 'metadata.', 'must be metadata. and the name of a top-level field'],
  ['metadata.a=%00', 'metadata.a', 'must be a string'],
  ['metadata.a=1&metadata.a=2', 'metadata.a', 'must be given only once'],
  [sixFilters, 'metadata.f', 'must be one of at most 5 metadata filters'],
  ['cursor=x', 'cursor', noCursor],
  ['cursor=', 'cursor', noCursor],
])('?%s is rejected with the name of %p', async (query, path, message) => {
  expect(await list(`?${query}`)).toMatchObject(invalid([path, message]))
})

test('a cursor works only for its list with the same filters, and on every replica', async () => {
  const other = await service.createTenant()
  const signals = Array.from({ length: 3 }, () => ({ value: 'positive', metadata: { a: '1' } }))
  const ids = await record(signals)
  await record(signals, 0, other)
  const cursorOf = async (query: string, of = tenant): Promise<string> =>
    (await list(query, of)).body.pagination.next_cursor
  const cursor = await cursorOf('?limit=1')
  const rejected: [string, Tenant?][] = [
    [`?cursor=${await cursorOf('?limit=1', other)}`],
    [`?cursor=${(cursor[0] === 'A' ? 'B' : 'A') + cursor.slice(1)}`],
    [`?cursor=${cursor}&cursor=${cursor}`],
    [`?cursor=${cursor}`, other],
  ]
  // Each of these selects all three signals.
  const times = ['since=2020-01-01', 'since=2020-01-02', 'until=2126-01-01', 'until=2126-01-02']
  const filters = ['', 'value=positive', 'metadata.a=1', ...times]
  for (const filter of filters) {
    const filtered = await cursorOf(`?limit=1&${filter}`)
    for (const another of filters) if (another !== filter) rejected.push([`?${another}&cursor=${filtered}`])
  }
  for (const [query, of] of rejected) {
    expect({ query, ...(await list(query, of)) }).toMatchObject({ query, ...invalid('cursor') })
  }
  const replica = await startReplica(service)
  const next = await replica.get(`/prompts/${tenant.prompt}/signals?cursor=${cursor}`, tenant.key)
  expect(idsOf(next)).toEqual(ids.toReversed().slice(1))
})
