import { expect, test } from 'bun:test'
import { requirePrompt } from '../../src/prompts/find.ts'
import { rollUpSignals, selectPromptsBehind } from '../../src/stats/store.ts'
import { invalid } from '../client.ts'
import { startReplica } from '../signals/fixtures.ts'
import { useNewTenant, useService } from '../use.ts'

const service = useService()
const tenant = useNewTenant(service, 100_000)

const read = (query = '') => service.get(`/prompts/${tenant.prompt}/stats${query}`, tenant.key)

async function record(at: string, value: string, metadata?: object): Promise<void> {
  service.clock.set(at)
  const { status } = await service.postSignal(tenant.prompt, tenant.key, { value, ...(metadata && { metadata }) })
  expect(status).toBe(201)
}

const counts = (positive: number, negative: number) => {
  const total = positive + negative
  return { positive, negative, total, rate: total === 0 ? null : Math.round((positive / total) * 1e4) / 1e4 }
}

/** Inserts signals as the service would, of given times and in an organisation that nobody writes to meanwhile. */
async function insert(number: number, step: string, from: string): Promise<void> {
  await service.services.db.sql`
    insert into signals (organisation_id, prompt_id, value, metadata, created_at)
    select
      p.organisation_id, p.id, case n % 3 when 0 then 'negative' else 'positive' end,
      case when n % 2 = 0 then jsonb_build_object('model', 'm' || n % 40) end, ${from}::text::timestamptz + n * ${step}::text::interval
    from prompts p, generate_series(0, ${number - 1}::integer) n
    where p.public_id = ${tenant.prompt}`
}

test('counts by day of a zone, gaps included, and the sum is that of the range', async () => {
  await record('2026-10-24T22:59:59.999Z', 'positive')
  await record('2026-10-24T23:00:00.000Z', 'positive')
  await record('2026-10-25T23:59:59.999Z', 'negative')
  await record('2026-10-27T00:00:00.000Z', 'positive')
  const { status, body } = await read('?tz=Europe/London&since=2026-10-24T12:00:00%2B01:00&until=2026-10-28')
  expect(status).toBe(200)
  expect(body).toEqual({
    data: [
      { start: '2026-10-23T23:00:00.000Z', ...counts(1, 0) },
      { start: '2026-10-24T23:00:00.000Z', ...counts(1, 1) },
      { start: '2026-10-26T00:00:00.000Z', ...counts(0, 0) },
      { start: '2026-10-27T00:00:00.000Z', ...counts(1, 0) },
    ],
    totals: counts(3, 1),
    range: {
      interval: 'day',
      tz: 'Europe/London',
      since: '2026-10-24T11:00:00.000Z',
      until: '2026-10-28T00:00:00.000Z',
    },
  })
})

test('since is included, until is not', async () => {
  await record('2026-11-14T12:00:00.500Z', 'positive')
  const total = async (query: string) => (await read(query)).body.totals.total
  expect(await total('?since=2026-11-14T12:00:00.500Z&until=2026-11-14T12:00:00.501Z')).toBe(1)
  expect(await total('?since=2026-11-14T12:00:00.400Z&until=2026-11-14T12:00:00.500Z')).toBe(0)
  expect(await total('?since=2026-11-14T12:00:00.501Z&until=2026-11-14T12:00:00.600Z')).toBe(0)
})

test.each([
  ['', 30, '2026-10-16T00:00:00.000Z', '2026-11-15T00:00:00.000Z'],
  ['?interval=hour', 24, '2026-11-13T13:00:00.000Z', '2026-11-14T13:00:00.000Z'],
  ['?interval=week', 12, '2026-08-24T00:00:00.000Z', '2026-11-16T00:00:00.000Z'],
  ['?interval=month', 12, '2025-12-01T00:00:00.000Z', '2026-12-01T00:00:00.000Z'],
  // Clocks are set back within these days, weeks and months.
  ['?tz=Europe/London', 30, '2026-10-15T23:00:00.000Z', '2026-11-15T00:00:00.000Z'],
  ['?tz=Europe/London&interval=week', 12, '2026-08-23T23:00:00.000Z', '2026-11-16T00:00:00.000Z'],
  ['?tz=Europe/London&interval=month', 12, '2025-12-01T00:00:00.000Z', '2026-12-01T00:00:00.000Z'],
  ['?tz=Asia/Kathmandu&interval=hour', 24, '2026-11-13T13:15:00.000Z', '2026-11-14T13:15:00.000Z'],
  ['?tz=Asia/Kathmandu', 30, '2026-10-15T18:15:00.000Z', '2026-11-14T18:15:00.000Z'],
])('%p counts up to the end of the current interval', async (query, points, since, until) => {
  await record('2026-11-14T12:30:00.000Z', 'positive')
  const { data, range, totals } = (await read(query)).body
  expect(data).toHaveLength(points)
  expect(range).toMatchObject({ since, until })
  expect(data[0].start).toBe(since)
  expect(data.at(-1).total).toBe(1)
  expect(totals).toEqual(counts(1, 0))
})

const noTime = 'must be an ISO 8601 time with its zone, such as 2026-11-14T23:35:00Z, or a date'

test.each([
  ['interval=minute', 'interval', 'must be one of hour, day, week, month'],
  ['interval=day&interval=day', 'interval', 'must be given only once'],
  ['tz=Mars/Base', 'tz', 'must be the name of a time zone, such as Europe/London'],
  ['tz=%2B05:30', 'tz', 'must be the name of a time zone, such as Europe/London'],
  ['since=2026-11-02&until=2026-11-01', 'since', 'must be before until'],
  ['since=2026-11-02&until=2026-11-02', 'since', 'must be before until'],
  ['since=1066-10-14&until=1066-10-15', 'since', 'must be after 1 January 1970'],
  ['until=tomorrow', 'until', noTime],
  ['by=model', 'by', 'must be metadata. and the name of a top-level field, such as metadata.model'],
  ['by=metadata.', 'by', 'must be metadata. and the name of a top-level field, such as metadata.model'],
  [
    'interval=hour&since=2026-01-01&until=2026-11-01',
    'interval',
    'must be longer than hour for this range, which has more than 1000',
  ],
])('?%s is rejected with the name of %p', async (query, path, message) => {
  expect(await read(`?${query}`)).toMatchObject(invalid([path, message]))
})

test('a thousand points are answered', async () => {
  const until = new Date(Date.UTC(2026, 0, 1) + 1_000 * 3_600_000).toISOString()
  const { status, body } = await read(`?interval=hour&since=2026-01-01&until=${until}`)
  expect(status).toBe(200)
  expect(body.data).toHaveLength(1_000)
})

test.each([
  '?since=2026-03-01&until=2026-05-01',
  '?tz=Europe/London&since=2026-03-03T04:05:06.007Z&until=2026-04-20T17:18:19.020Z',
  '?tz=America/St_Johns&since=2026-03-02&until=2026-04-20',
  '?tz=Asia/Kathmandu&interval=week&since=2026-03-02&until=2026-04-20',
  '?tz=Australia/Lord_Howe&interval=hour&since=2026-04-01T00:01:00Z&until=2026-04-10T00:02:00Z',
  '?interval=month&since=2026-01-01&until=2026-12-01',
  '?interval=hour&since=2026-03-05T10:07:00Z&until=2026-03-05T10:14:00Z',
])('%s counts the same from rows, from rollups, and from both', async (query) => {
  // Over the changes of clocks in spring, and no more than a reader leaves in the tail.
  const [number, stepMs, from] = [1_900, 2_101_001, Date.UTC(2026, 2, 1)]
  await insert(number, `${stepMs} milliseconds`, new Date(from).toISOString())
  const { sql } = service.services.db
  const prompt = await requirePrompt(sql, tenant.prompt)
  for (const rows of [0, 1, 900, 1_000]) {
    await rollUpSignals(sql, prompt, rows)
    const { data, range } = (await read(query)).body
    const bounds = [range.since, ...data.slice(1).map(({ start }: { start: string }) => start), range.until]
    const indexes = Array.from({ length: number }, (_, n) => ({ at: new Date(from + n * stepMs).toISOString(), n }))
    const expected = data.map((_: object, index: number) => {
      const within = indexes.filter(({ at }) => at >= bounds[index] && at < bounds[index + 1])
      const negative = within.filter(({ n }) => n % 3 === 0).length
      return counts(within.length - negative, negative)
    })
    expect(data.map(({ start: _, ...point }: { start: string }) => point)).toEqual(expected)
  }
  expect(await selectPromptsBehind(sql, prompt.organisationId, [prompt.id], 0)).toEqual([])
})

test('a signal that was answered 201 is in the next response of every replica', async () => {
  service.clock.set('2026-11-14T12:00:00.000Z')
  const replica = await startReplica(service)
  await insert(5_000, '1 second', '2026-11-14T00:00:00Z')
  for (let number = 5_001; number <= 5_020; number += 1) {
    await record('2026-11-14T12:00:00.000Z', 'positive')
    const { body } = await replica.get(`/prompts/${tenant.prompt}/stats`, tenant.key)
    expect(body.totals.total).toBe(number)
  }
})

test('of a list with thousands of elements the first 20 are read, however many signals have one', async () => {
  const metadata = JSON.stringify({ long: Array.from({ length: 10_000 }, (_, n) => n === 20) })
  for (let rows = 0; rows < 1_500; rows += 100) {
    await service.services.db.sql`
      with long as materialized (select ${metadata}::text::jsonb as metadata)
      insert into signals (organisation_id, prompt_id, value, metadata, created_at)
      select p.organisation_id, p.id, 'positive', long.metadata, '2026-11-14T12:00:00Z'
      from prompts p, long, generate_series(1, 100) where p.public_id = ${tenant.prompt}`
  }
  service.clock.set('2026-11-14T13:00:00.000Z')
  const { by } = (await read('?by=metadata.long')).body
  expect([by.values, by.overlapping]).toEqual([[{ value: 'false', ...counts(1_500, 0) }], false])
})

test('splits by a field of the metadata, a list by its elements: the largest values, the rest, and those without', async () => {
  await record('2026-11-14T12:00:00.000Z', 'negative', { model: 7 })
  await record('2026-11-14T12:00:00.000Z', 'positive', { model: '7' })
  await record('2026-11-14T12:00:00.000Z', 'positive', { model: null })
  await record('2026-11-14T12:00:00.000Z', 'positive', { model: ['a', 7, 'a', ['b']] })
  await record('2026-11-14T12:00:00.000Z', 'positive', { model: [] })
  await record('2026-11-14T12:00:00.000Z', 'negative', { other: 1 })
  await record('2026-11-14T12:00:00.000Z', 'positive')
  expect((await read('?by=metadata.model')).body.by).toEqual({
    key: 'model',
    signals: 7,
    overlapping: true,
    complete: true,
    values: [
      { value: '7', ...counts(2, 1) },
      { value: '["b"]', ...counts(1, 0) },
      { value: 'a', ...counts(1, 0) },
      { value: 'null', ...counts(1, 0) },
    ],
    rest: { values: 0, ...counts(0, 0) },
    none: counts(2, 1),
  })
})

test('long values that begin alike are told apart, and shown whole', async () => {
  const [one, other] = ['a', 'b'].map((end) => 'x'.repeat(150) + end)
  for (const model of [one, one, other]) await record('2026-11-14T12:00:00.000Z', 'positive', { model })
  expect((await read('?by=metadata.model')).body.by.values).toEqual([
    { value: one, ...counts(2, 0) },
    { value: other, ...counts(1, 0) },
  ])
})

test('a split reads the newest 10,000 signals of the range, and says whether these are all', async () => {
  const split = async () => (await read('?since=2026-11-14&until=2026-11-16&by=metadata.model')).body.by
  await insert(10_000, '1 second', '2026-11-14T00:00:00Z')
  expect(await split()).toMatchObject({ signals: 10_000, complete: true })
  await insert(2_000, '1 second', '2026-11-14T00:00:00Z')
  const { values, rest, none, ...by } = await split()
  expect(by).toMatchObject({ signals: 10_000, complete: false })
  expect(values).toHaveLength(20)
  expect(rest).toMatchObject({ values: 0, total: 0 })
  const sum = values.reduce((all: number, { total }: { total: number }) => all + total, 0)
  expect(sum + none.total).toBe(10_000)
  await record('2026-11-14T23:00:00.000Z', 'positive', { model: 'rare' })
  expect((await split()).rest).toMatchObject({ values: 1, total: 1 })
})
