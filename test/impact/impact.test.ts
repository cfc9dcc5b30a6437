import { beforeAll, expect, spyOn, test } from 'bun:test'
import type { Counts } from '../../src/lib/counts.ts'
import { invalid } from '../client.ts'
import { useService, useTenant } from '../use.ts'
import { addSignals, deployed, merged, onDays, rollUp, signals } from './history.ts'

const service = useService()
const tenant = useTenant(service)
/** The entries of the tenant's prompt, newest first. */
let entries: { id: number; action: string; commit_sha: string; pr_number: number | null; pr_url: string | null }[]

const first = '1111111aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'
const second = '2222222bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'
const third = '3333333ccccccccccccccccccccccccccccccccc'

const side = (positive: number, total: number): Counts => ({ positive, negative: total - positive })

beforeAll(async () => {
  service.clock.set('2026-11-15T12:00:00.000Z')
  await service.addHistory(tenant.prompt, [
    deployed(first, '2026-10-01T09:00:00.000Z'),
    { ...merged('dddddddd', '2026-10-09T09:00:00.000Z', 7), action: 'pr_opened' },
    { ...merged(second, '2026-10-10T09:00:00.000Z', 7), title: 'Warmer' },
    deployed(third, '2026-11-10T09:30:00.000Z'),
  ])
  await addSignals(service, tenant.prompt, [
    // Signals from before the first change belong to none.
    ...signals(5, 5, { at: '2026-09-30T12:00:00.000Z' }),
    ...onDays(7, signals(700, 300, { at: '2026-10-02T12:00:00.000Z' })),
    ...signals(480, 120, { at: '2026-10-20T12:00:00.000Z' }),
    // Named, while another is live.
    ...signals(320, 80, { at: '2026-11-12T12:00:00.000Z', commit: second.slice(0, 7) }),
    ...signals(8, 2, { at: '2026-11-15T08:00:00.000Z', commit: third }),
  ])
  await rollUp(service, tenant.prompt, 1_500)
  entries = (await service.getHistory(tenant.prompt, tenant.key, '?include=title')).body.data
})

const read = (query = '', { prompt, key } = tenant) => service.get(`/prompts/${prompt}/impact${query}`, key)

const baseOf = (place: number, title: string | null) => {
  const { id, commit_sha, pr_number, pr_url } = entries[place] as (typeof entries)[number]
  return { id, commit_sha, pr_number, pr_url, title, skipped: 0 }
}

const impactOfThird = () => ({
  change: entries[0],
  base: baseOf(1, 'Warmer'),
  window: { from: '2026-11-10T09:30:00.000Z', until: null },
  signals: { positive: 8, negative: 2, total: 10, by_commit: 10, by_time: 0 },
  rate: { value: 0.8, low: 0.490162, high: 0.943318 },
  difference: { value: 0, low: -1, high: 1 },
  verdict: 'undecided',
  signals_needed: null,
  wander: { points: 1.01, days: 9 },
})

const impactOfSecond = () => ({
  change: { ...entries[1], title: 'Warmer' },
  base: baseOf(3, null),
  window: { from: '2026-10-10T09:00:00.000Z', until: '2026-11-10T09:30:00.000Z' },
  signals: { positive: 800, negative: 200, total: 1_000, by_commit: 400, by_time: 600 },
  rate: { value: 0.8, low: 0.774081, high: 0.823623 },
  difference: { value: 0.1, low: 0.03449, high: 0.16551 },
  verdict: 'better',
  signals_needed: null,
  wander: { points: 1.01, days: 9 },
})

const shownPrompt = (id = tenant.prompt) => expect.objectContaining({ id, name: 'test', repository: null, path: null })

const impactOfFirst = () => ({
  change: entries[3],
  window: { from: '2026-10-01T09:00:00.000Z', until: '2026-10-10T09:00:00.000Z' },
  signals: { positive: 700, negative: 300, total: 1_000, by_commit: 0, by_time: 1_000 },
  rate: { value: 0.7, low: 0.670876, high: 0.727593 },
  difference: null,
  verdict: null,
  signals_needed: null,
  base: null,
  wander: null,
})

test('each change that went live has its signals, its rate, and its difference to the change before', async () => {
  const { status, headers, body } = await read()
  expect(status).toBe(200)
  expect(body).toEqual({
    data: [impactOfThird(), impactOfSecond(), impactOfFirst()],
    pagination: { current_page: 1, total_pages: 1, total_count: 3, per_page: 25 },
    prompt: shownPrompt(),
    rate_changed: null,
  })
  const address = `/api/v1/prompts/${tenant.prompt}/impact?page=1&limit=25&margin=0.05`
  expect(headers.get('link')).toBe(`<${address}>; rel="first", <${address}>; rel="last"`)
})

test('pages are those of the history: the last of one is compared with the first of the next', async () => {
  const address = (page: number) => `</api/v1/prompts/${tenant.prompt}/impact?page=${page}&limit=1&margin=0.2>`
  const middle = await read('?page=2&limit=1&margin=.20')
  expect(middle.body).toEqual({
    data: [{ ...impactOfSecond(), verdict: 'same' }],
    pagination: { current_page: 2, total_pages: 3, total_count: 3, per_page: 1 },
    prompt: shownPrompt(),
    rate_changed: null,
  })
  expect(middle.headers.get('link')).toBe(
    `${address(1)}; rel="first", ${address(1)}; rel="prev", ${address(3)}; rel="next", ${address(3)}; rel="last"`,
  )
  expect((await read('?page=99&limit=abc')).body).toEqual({
    data: [],
    pagination: { current_page: 99, total_pages: 1, total_count: 3, per_page: 25 },
    prompt: shownPrompt(),
    rate_changed: null,
  })
})

test('a page of many changes is read in short transactions, and no further once its client has an error', async () => {
  const { prompt, key } = await service.createTenant()
  const changes = Array.from({ length: 60 }, (_, index) =>
    deployed(`c${index}`.padEnd(40, '0'), new Date(Date.UTC(2026, 8, 1 + index)).toISOString()),
  )
  await service.addHistory(prompt, changes)
  const { db } = service.services
  const { transaction } = db
  const read = () => service.get(`/prompts/${prompt}/impact?limit=100`, key)
  const begun = spyOn(db, 'transaction')
  try {
    const { body } = await read()
    expect(body.data).toHaveLength(60)
    // The ids of the page, and then 25 changes at a time.
    expect(begun).toHaveBeenCalledTimes(4)

    begun.mockReset()
    begun.mockImplementation((work, request, isolation) =>
      transaction(work, { ...request, deadline: begun.mock.calls.length < 3 ? request?.deadline : 0 }, isolation),
    )
    expect((await read()).status).toBe(503)
    expect(begun).toHaveBeenCalledTimes(3)
    for (const [, request] of begun.mock.calls) expect(request?.deadline).toBeNumber()
  } finally {
    begun.mockRestore()
  }
})

test('any two changes can be compared, in either direction', async () => {
  const [thirdId, , firstId] = entries.filter(({ action }) => action !== 'pr_opened').map(({ id }) => id)
  const { status, body, headers } = await read(`?base=${firstId}&head=${thirdId}&page=3&limit=1`)
  expect(status).toBe(200)
  expect(body).toEqual({
    data: [
      { ...impactOfThird(), base: baseOf(3, null), difference: { value: 0.1, low: -1, high: 1 }, signals_needed: 290 },
      impactOfFirst(),
    ],
    pagination: { current_page: 1, total_pages: 1, total_count: 2, per_page: 25 },
    prompt: shownPrompt(),
    rate_changed: null,
  })
  expect(headers.get('link')).toContain(`base=${firstId}&head=${thirdId}>; rel="first"`)
  const turned = (await read(`?base=${thirdId}&head=${firstId}`)).body.data
  expect(turned[0].difference).toEqual({ value: -0.1, low: -1, high: 1 })
  expect(turned[1].difference).toBeNull()
})

test('a change is compared with the nearest earlier one that has 50 signals, and the past tells how the rate wanders', async () => {
  const other = await service.createTenant()
  const commits = ['1', '2', '3', '4', '5'].map((digit) => `abcdef${digit}`)
  const times = ['2026-10-01T10:07:00.000Z', '2026-10-10T10:07:00.000Z', '2026-10-20T10:00:00.000Z']
  await service.addHistory(other.prompt, [
    ...times.map((time, index) => deployed(commits[index] as string, time)),
    deployed(commits[3] as string, '2026-10-20T10:05:00.000Z'),
    deployed(commits[4] as string, '2026-10-20T10:10:00.000Z'),
  ])
  await addSignals(service, other.prompt, [
    ...onDays(9, signals(450, 450, { at: '2026-10-01T11:00:00.000Z' })),
    ...onDays(9, signals(630, 270, { at: '2026-10-10T10:07:00.000Z' })),
    ...signals(0, 49, { at: '2026-10-20T10:01:00.000Z' }),
    ...onDays(9, signals(450, 450, { at: '2026-10-20T10:10:00.000Z', commit: commits[4] })),
  ])
  await rollUp(service, other.prompt, 2_000)
  const { data } = (await read('', other)).body
  const bases = data.map(({ base }: { base: Shown }) => base && [base.commit_sha, base.skipped])
  expect(bases).toEqual([[commits[1], 2], [commits[1], 1], [commits[1], 0], [commits[0], 0], null])
  expect(data.map(({ verdict }: { verdict: string }) => verdict)).toEqual([
    ...['worse', 'undecided', 'undecided', 'better'],
    null,
  ])
  // Without signals there is no difference, and a change that is over gets no forecast.
  expect([data[1].difference, data[2].difference.value]).toEqual([null, -0.7])
  expect([data[1].signals_needed, data[2].signals_needed]).toEqual([null, null])
  // All days of all changes are alike: less than the 2.5 points that are assumed without a past.
  expect(data[0].wander.days).toBe(27)
  expect(data[0].wander.points).toBeLessThan(2.5)
  // A chosen base is exactly that one.
  const [head, , empty] = data.map(({ change }: { change: { id: number } }) => change.id)
  const [pair] = (await read(`?base=${empty}&head=${head}`, other)).body.data
  expect(pair.base).toMatchObject({ id: empty, skipped: 0 })
  expect(pair.difference).toMatchObject({ low: -1, high: 1 })
})

type Shown = { commit_sha: string; skipped: number } | null

test('a prompt without changes or signals is answered with nothing made up', async () => {
  const other = await service.createTenant()
  const nothing = { current_page: 1, total_pages: 0, total_count: 0, per_page: 25 }
  expect((await read('', other)).body).toEqual({
    ...{ data: [], pagination: nothing, prompt: shownPrompt(other.prompt) },
    rate_changed: null,
  })
  await service.addHistory(other.prompt, [
    deployed('one', '2026-10-01T09:00:00.000Z'),
    deployed('two', '2026-10-02T09:00:00.000Z'),
  ])
  const signals = { positive: 0, negative: 0, total: 0, by_commit: 0, by_time: 0 }
  const shown = { change: expect.anything(), base: expect.anything(), window: expect.anything(), signals }
  const unknown = { ...shown, rate: null, difference: null, signals_needed: null, wander: null }
  expect((await read('', other)).body.data).toEqual([
    { ...unknown, verdict: 'undecided' },
    { ...unknown, base: null, verdict: null },
  ])
})

test.each<[string, ...string[]]>([
  ['margin=2', 'margin'],
  ['margin=-0.1', 'margin'],
  ['margin=5%25', 'margin'],
  ['margin=0.1&margin=0.2', 'margin'],
  ['base=1', 'head'],
  ['head=1', 'base'],
  ['base=x&head=1', 'base'],
  ['base=1&head=0', 'head'],
  ['base=1&head=99999999999999999999', 'head'],
  ['base=1&head=1', 'head'],
  ['action=pr_opened', 'action'],
  ['base=1&head=2&branch=main&action=deployed', 'action', 'branch'],
])('%s is rejected with the name of what is wrong', async (query, ...names) => {
  expect(await read(`?${query}`)).toMatchObject(invalid(...names))
})

test('what is no change of this prompt cannot be compared with', async () => {
  const other = await service.createTenant()
  await service.addHistory(other.prompt, [deployed('elsewhere', '2026-10-01T09:00:00.000Z')])
  const [elsewhere] = (await service.getHistory(other.prompt, other.key)).body.data
  const opened = entries.find(({ action }) => action === 'pr_opened')?.id
  expect(await read(`?base=${entries[3]?.id}&head=${elsewhere.id}`)).toMatchObject(invalid('head'))
  for (const base of [elsewhere.id, opened, 999_999_999]) {
    expect(await read(`?base=${base}&head=${entries[3]?.id}`)).toMatchObject(invalid('base'))
  }
})

test.each([
  ['action=deployed', [0, 3]],
  ['action=pr_merged', [1]],
  ['action=deployed&action=pr_merged', [0, 1, 3]],
  ['branch=main', [0, 1, 3]],
  ['branch=other', []],
  ['since=2026-10-10T09:00:00.000Z', [0, 1]],
  ['until=2026-10-10T09:00:00.000Z', [1, 3]],
  ['since=2026-10-02&until=2026-11-10&action=deployed', []],
])('%s chooses changes, and each is compared with the one before it all the same', async (query, places) => {
  const all = [impactOfThird(), impactOfSecond(), null, impactOfFirst()]
  const { status, body, headers } = await read(`?limit=1&page=1&${query}`)
  const data = places.map((place) => all[place])
  expect(status).toBe(200)
  expect([body.data, body.pagination.total_count]).toEqual([data.slice(0, 1), places.length])
  expect((await read(`?${query}`)).body.data).toEqual(data)
  // The links of the pages have the filters, too.
  const last = /<([^>]+)>; rel="last"/.exec(headers.get('link') ?? '')?.[1] as string
  expect((await service.call('GET', last, { key: tenant.key })).body.data).toEqual(data.slice(-1))
})

test('the list of prompts has the live change and the last 30 days of each', async () => {
  const { status, body } = await service.get('/impact', tenant.key)
  const shown = await service.get(`/prompts/${tenant.prompt}`, tenant.key)
  const counted: Record<string, Counts> = {
    '2026-10-20': side(480, 600),
    '2026-11-12': side(320, 400),
    '2026-11-15': side(8, 10),
  }
  const days = Array.from({ length: 30 }, (_, index) => {
    const date = new Date(Date.UTC(2026, 9, 17 + index)).toISOString().slice(0, 10)
    return { date, ...(counted[date] ?? side(0, 0)) }
  })
  const rate = { value: 0.8, low: 0.774215, high: 0.823512 }
  const recent = { ...side(808, 1_010), total: 1_010, rate, days }
  expect(status).toBe(200)
  expect(body).toEqual({
    data: [{ prompt: shown.body.data, latest: impactOfThird(), rate_changed: null, recent }],
    pagination: { per_page: 25, next_cursor: null },
  })
})

test('a rate that changed as a change went live has its reason in git, also if signals named its commit before', async () => {
  const other = await service.createTenant()
  await service.addHistory(other.prompt, [
    deployed(first, '2026-08-01T09:00:00.000Z'),
    deployed(second, '2026-11-11T09:00:00.000Z'),
  ])
  await addSignals(service, other.prompt, [
    ...onDays(30, signals(1_500, 1_000, { at: '2026-10-11T12:00:00.000Z', commit: second })),
    ...onDays(3, signals(2_400, 600, { at: '2026-11-12T12:00:00.000Z', commit: second })),
  ])
  expect((await read('', other)).body.rate_changed).toBeNull()
})

test('a rate that changed while one change was live is shown beside the changes', async () => {
  const other = await service.createTenant()
  await service.addHistory(other.prompt, [
    deployed(first, '2026-08-01T09:00:00.000Z'),
    deployed(second, '2026-10-01T09:00:00.000Z'),
  ])
  await addSignals(service, other.prompt, [
    ...onDays(30, signals(900, 300, { at: '2026-10-09T12:00:00.000Z' })),
    ...onDays(8, signals(120, 200, { at: '2026-11-08T12:00:00.000Z' })),
  ])
  const { rate_changed: changed } = (await read('', other)).body
  expect(changed).toMatchObject({ from: '2026-11-08', until: '2026-11-14', before: { value: 0.75 } })
  expect(changed.difference.value).toBeCloseTo(changed.after.value - 0.75, 5)
  expect(changed.difference.high).toBeLessThan(0)
  expect((await read('?page=2&limit=1', other)).body.rate_changed).toBeNull()
  expect((await service.get('/impact', other.key)).body.data[0].rate_changed).toEqual(changed)
})
