import { beforeEach, expect, test } from 'bun:test'
import { requirePrompt } from '../../src/prompts/find.ts'
import { type ExportStep, exportSignals } from '../../src/signals/read.ts'
import { exportParams } from '../../src/signals/schema_params.ts'
import { errorOf, invalid } from '../client.ts'
import { useNewTenant, useService } from '../use.ts'
import { exportSignalsOf, fillPrompts, fillSignals, idsIn, postBatch, signalsIn } from './fixtures.ts'

const service = useService()
const tenant = useNewTenant(service, 1_000_000)
let second: string

beforeEach(async () => {
  service.clock.set('2026-11-20T12:00:00.000Z')
  second = await service.createPrompt(tenant, 'second')
})

/** Records positive signals, unless they say otherwise, and returns their ids. */
async function record(prompt: string, signals: object[]): Promise<number[]> {
  const positive = signals.map((signal) => ({ value: 'positive', ...signal }))
  const answer = await postBatch(service, { ...tenant, prompt }, positive)
  return answer.body.data.map(({ id }: { id: number }) => id)
}

const exportOf = (prompt: string | null, query = '') => exportSignalsOf(service, tenant.key, prompt, query)

/** The steps of the export of a prompt, or of its organisation; each with the number of statements so far. */
async function stepsOf(prompt: string, ofAll = false) {
  const { db } = service.services
  const found = await requirePrompt(db.sql, prompt)
  const source = { organisationId: found.organisationId, prompt: ofAll ? null : found }
  const steps: (ExportStep & { statements: number })[] = []
  let statements = 0
  const heavyRead = <T>(_: number, read: () => Promise<T>) => {
    statements += 1
    return read()
  }
  for await (const step of exportSignals({ ...db, heavyRead }, source, exportParams.parse(new URLSearchParams())))
    steps.push({ ...step, statements })
  return steps
}

test('an export has every signal once, in the order of their times, with the metadata as it is kept', async () => {
  const [late, early, plainOne] = await record(tenant.prompt, [
    { value: 'negative', metadata: { n: JSON.rawJSON('12345678901234567890'), text: 'é\n"=1' } },
    { created_at: '2026-11-03T00:00:00Z', metadata: {} },
    { created_at: '2026-11-04T10:00:00.250Z' },
  ])
  const answer = await exportOf(tenant.prompt)
  expect(answer.status).toBe(200)
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    'content-type': 'application/x-ndjson',
    'content-disposition': `attachment; filename="signals-${tenant.prompt}.ndjson"`,
    'cache-control': 'no-store',
  })
  expect(answer.text).toBe(
    [
      `{"id":${early},"prompt":"${tenant.prompt}","value":"positive","metadata":{},"created_at":"2026-11-03T00:00:00.000Z"}\n`,
      `{"id":${plainOne},"prompt":"${tenant.prompt}","value":"positive","metadata":null,"created_at":"2026-11-04T10:00:00.250Z"}\n`,
      `{"id":${late},"prompt":"${tenant.prompt}","value":"negative","metadata":{"n": 12345678901234567890, "text": "é\\n\\"=1"},"created_at":"2026-11-20T12:00:00.000Z"}\n`,
    ].join(''),
  )
})

test('CSV is quoted by RFC 4180, and no cell begins with what a spreadsheet would run', async () => {
  const metadata = { '=cmd': '+1', a: 'x,"y"\r\n' }
  const [id, other] = await record(tenant.prompt, [{ metadata }, { value: 'negative' }])
  const answer = await exportOf(tenant.prompt, '?format=csv')
  expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8')
  expect(answer.headers.get('content-disposition')).toBe(`attachment; filename="signals-${tenant.prompt}.csv"`)
  expect(answer.text).toBe(
    [
      'id,prompt,value,created_at,metadata,subject',
      `${id},${tenant.prompt},positive,2026-11-20T12:00:00.000Z,"{""a"": ""x,\\""y\\""\\r\\n"", ""=cmd"": ""+1""}",`,
      `${other},${tenant.prompt},negative,2026-11-20T12:00:00.000Z,,`,
      '',
    ].join('\r\n'),
  )
  for (const line of answer.text.split('\r\n')) {
    const [, ...cells] = /^(.*?),(.*?),(.*?),(.*?),(.*)$/s.exec(line) ?? []
    expect(cells.filter((cell) => /^"?[=+\-@\t\r]/.test(cell))).toEqual([])
  }
})

test('an export of many steps is whole, and goes on after any of its signals', async () => {
  await fillSignals(service, tenant.prompt, 7_001)
  const all = idsIn(await exportOf(tenant.prompt))
  expect(all).toHaveLength(7_001)
  expect(new Set(all).size).toBe(7_001)
  for (const index of [0, 1_999, 2_000, 6_999, 7_000]) {
    expect(idsIn(await exportOf(tenant.prompt, `?after=${all[index]}`))).toEqual(all.slice(index + 1))
  }
  expect(idsIn(await exportOf(tenant.prompt, '?value=negative'))).toHaveLength(700)
  // Resumed, a table has no second heading.
  expect((await exportOf(tenant.prompt, `?format=csv&after=${all[6_999]}`)).text).toStartWith(`${all[7_000]},`)
})

test('the organisation’s export has all its prompts and nobody else’s, and goes on in the middle of one', async () => {
  const other = await service.createTenant(10)
  await service.postSignal(other.prompt, other.key)
  await record(second, [{}, {}, {}])
  await record(tenant.prompt, [{}, { created_at: '2026-11-02T00:00:00Z' }])
  const answer = await exportOf(null)
  expect(answer.headers.get('content-disposition')).toBe('attachment; filename="signals.ndjson"')
  expect(signalsIn(answer).map(({ prompt }) => prompt)).toEqual([tenant.prompt, tenant.prompt, second, second, second])
  const ids = idsIn(answer)
  for (const index of ids.keys()) {
    expect(idsIn(await exportOf(null, `?after=${ids[index]}`))).toEqual(ids.slice(index + 1))
  }
})

test('filters select by value and time', async () => {
  const ids = await record(tenant.prompt, [
    { created_at: '2026-11-01T00:00:00Z' },
    { created_at: '2026-11-02T00:00:00Z', value: 'negative' },
    { created_at: '2026-11-03T00:00:00Z' },
  ])
  for (const [query, found] of [
    ['since=2026-11-02', [1, 2]],
    ['until=2026-11-03', [0, 1]],
    ['value=negative', [1]],
    [`since=2026-11-03&after=${ids[0]}`, [2]],
    ['since=2027-01-01', []],
  ] as const) {
    const answer = await exportOf(tenant.prompt, `?${query}`)
    expect([query, idsIn(answer)]).toEqual([query, found.map((index) => ids[index] as number)])
  }
})

test('resumed with since at the very time of the last line, an export repeats no line', async () => {
  const created_at = '2026-11-03T00:00:00.000Z'
  const ids = await record(tenant.prompt, Array(3).fill({ created_at }))
  for (const prompt of [tenant.prompt, null]) {
    for (const index of ids.keys()) {
      const resumed = await exportOf(prompt, `?since=${created_at}&after=${ids[index]}`)
      expect(idsIn(resumed)).toEqual(ids.slice(index + 1))
    }
  }
})

test('an organisation’s export reaches several pages of prompts', async () => {
  await fillPrompts(service, tenant.org, 205)
  const ids = idsIn(await exportOf(null))
  expect(ids).toHaveLength(205)
  expect(new Set(ids).size).toBe(205)
  expect(idsIn(await exportOf(null, `?after=${ids[102]}`))).toEqual(ids.slice(103))
})

test('large metadata is exported whole, in steps of a bounded size', async () => {
  const metadata = { text: 'x'.repeat(16_000) }
  for (let n = 0; n < 2; n += 1) await record(tenant.prompt, Array(200).fill({ metadata }))
  const answer = await exportOf(tenant.prompt)
  expect(signalsIn(answer).map((signal) => signal.metadata.text.length)).toEqual(Array(400).fill(16_000))
  const sizes = (await stepsOf(tenant.prompt)).map((step) => step.text.length)
  expect(sizes.reduce((sum, size) => sum + size)).toBe(answer.text.length)
  // A step ends with the signal that takes it over a MiB.
  expect(sizes.filter((size) => size > 1024 * 1024 + 17_000)).toEqual([])
})

test('many small signals are exported in steps that grow to 2,000, each in the organisation’s share', async () => {
  await fillSignals(service, tenant.prompt, 5_000)
  const steps = await stepsOf(tenant.prompt)
  expect(steps.map(({ signals }) => signals)).toEqual([250, 500, 1_000, 2_000, 1_250])
  expect(steps.map(({ statements }) => statements)).toEqual([1, 2, 3, 4, 5])
})

test.each([
  ['format=xml', 'format'],
  ['format=csv&format=csv', 'format'],
  ['value=maybe', 'value'],
  ['since=2026-11-02&until=2026-11-02', 'since'],
  ['after=0', 'after'],
  ['after=x', 'after'],
  ['after=99999999999999999999', 'after'],
  ['after=9007199254740991', 'after'],
])('the query %s is rejected, and the parameter named', async (query, parameter) => {
  expect(await exportOf(tenant.prompt, `?${query}`)).toMatchObject(invalid(parameter))
})

test('a signal of another prompt or organisation to go on after is rejected as one that does not exist', async () => {
  const other = await service.createTenant(10)
  const { body } = await service.postSignal(other.prompt, other.key)
  const [elsewhere] = await record(second, [{}])
  const unknown = await exportOf(tenant.prompt, '?after=9007199254740991')
  expect(unknown.status).toBe(422)
  for (const id of [body.data.id, elsewhere]) {
    expect(errorOf(await exportOf(tenant.prompt, `?after=${id}`))).toEqual(errorOf(unknown))
  }
  expect((await exportOf(null, `?after=${body.data.id}`)).status).toBe(422)
})

test('an export begins however many prompts without signals come before the first one', async () => {
  const { db } = service.services
  const { organisationId } = await requirePrompt(db.sql, second)
  await db.sql`
    insert into prompts (public_id, organisation_id, name, created_at)
    select 'pmt_empty' || n, ${organisationId}, 'empty', now() from generate_series(1, 1000) n`
  const steps = await stepsOf(second, true)
  expect(steps.filter(({ text }) => text !== '')).toEqual([])
  expect(steps[0]?.statements).toBe(1)
  expect(Math.max(...steps.map(({ statements }, index) => statements - (steps[index - 1]?.statements ?? 0)))).toBe(1)
})
