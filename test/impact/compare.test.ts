import { beforeAll, expect, test } from 'bun:test'
import { type Estimate, estimateDifference, rateOf } from '../../src/impact/rate.ts'
import { resolveCommit } from '../../src/impact/read_compare.ts'
import { invalid } from '../client.ts'
import { useService, useTenant } from '../use.ts'
import { addSignals, deployed, merged, rollUp, signals } from './history.ts'

const service = useService()
const tenant = useTenant(service)

const base = '1111111aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'
/** The head of a pull request that is open: nothing of it is live. */
const head = '2222222bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'
const [like, alike] = ['3333333cc1'.padEnd(40, '0'), '3333333cc2'.padEnd(40, '0')]

/** Positive and negative signals of the base and of the head. */
const days: [string, [number, number], [number, number]][] = [
  ['2026-11-01', [40, 10], [0, 0]],
  ['2026-11-02', [160, 40], [54, 6]],
  ['2026-11-03', [60, 60], [160, 40]],
  ['2026-11-04', [30, 20], [180, 20]],
  ['2026-11-05', [0, 0], [70, 30]],
  ['2026-11-06', [0, 0], [7, 3]],
]

const shownDays = days.map(([date, ...sides]) => {
  const [ofBase, ofHead] = sides.map(([positive, negative]) => ({ positive, negative }))
  return { date, base: ofBase as { positive: number; negative: number }, head: ofHead as typeof ofBase & object }
})

beforeAll(async () => {
  service.clock.set('2026-11-15T12:00:00.000Z')
  await service.addHistory(tenant.prompt, [
    deployed(base, '2026-10-01T09:00:00.000Z'),
    { ...merged(head, '2026-10-31T09:00:00.000Z', 7), action: 'pr_opened' },
    deployed('4444444dd', '2026-11-03T12:00:00.000Z'),
  ])
  await addSignals(
    service,
    tenant.prompt,
    days.flatMap(([date, ofBase, ofHead], index) => [
      ...signals(...ofBase, { at: `${date}T10:07:00.000Z`, commit: index % 2 === 0 ? base : base.slice(0, 9) }),
      ...signals(...ofHead, { at: `${date}T23:59:59.999Z`, commit: index % 2 === 0 ? head : head.slice(0, 7) }),
    ]),
  )
  await addSignals(service, tenant.prompt, signals(3, 1, { at: '2026-11-02T10:00:00.000Z', commit: like }))
  await addSignals(service, tenant.prompt, signals(3, 1, { at: '2026-11-03T10:00:00.000Z', commit: alike }))
  // A short hash that could name either counts for neither.
  await addSignals(service, tenant.prompt, signals(2, 2, { at: '2026-11-03T10:00:00.000Z', commit: '5555555' }))
  await addSignals(service, tenant.prompt, signals(9, 9, { at: '2026-11-03T10:00:00.000Z', commit: '3333333cc' }))
  await rollUp(service, tenant.prompt, 700)
})

const read = (query: string) => service.get(`/prompts/${tenant.prompt}/compare?${query}`, tenant.key)

test('two commits are compared by the days on which both have signals, whether they are live or not', async () => {
  const { status, body } = await read(`base=${base}&head=${head.slice(0, 7)}`)
  expect(status).toBe(200)
  // Worked by hand: weights 200·60/260, 120·200/320 and 50·200/250.
  const weights = [600 / 13, 75, 40]
  const mean = (rates: number[]) =>
    rates.reduce((sum, rate, day) => sum + rate * (weights[day] as number), 0) / (600 / 13 + 115)
  const { difference, base: ofBase, head: ofHead } = body.data
  expect(ofBase.rate.value).toBeCloseTo(mean([0.8, 0.5, 0.6]), 5)
  expect(ofHead.rate.value).toBeCloseTo(mean([0.9, 0.8, 0.9]), 5)
  // As precise as (Σw)² / Σ(w²/n) signals of equal weight: 245.6 and 304.2.
  const squares = (totals: number[]) =>
    totals.reduce((sum, total, day) => sum + (weights[day] as number) ** 2 / total, 0)
  const precisionOf = (totals: number[]) => (600 / 13 + 115) ** 2 / squares(totals)
  const expectRate = (shown: Estimate, value: number, total: number) =>
    expect(shown).toEqual(rateOf({ positive: value * total, negative: (1 - value) * total }) as Estimate)
  expectRate(ofBase.rate, mean([0.8, 0.5, 0.6]), precisionOf([200, 120, 50]))
  expectRate(ofHead.rate, mean([0.9, 0.8, 0.9]), precisionOf([60, 200, 200]))
  // p = (positive + 1) / (signals + 2) over these days.
  const rate = (160 + 54 + 60 + 160 + 30 + 180 + 1) / (830 + 2)
  const value = mean([0.1, 0.3, 0.3])
  expect(difference).toEqual(estimateDifference(value, (rate * (1 - rate)) / (600 / 13 + 115), 1 / 20))
  expect(body.data).toMatchObject({
    base: { commit: base, change: { action: 'deployed' } },
    head: { commit: head, change: { action: 'pr_opened', pr_number: 7 } },
    verdict: 'better',
    signals_needed: null,
    reason: null,
    notes: ['The base has no signals after 2026-11-04: 2 later days of the head do not count.'],
    overlap: { days: 3, from: '2026-11-02', until: '2026-11-04' },
    days: shownDays,
  })
  expect(ofBase.signals).toEqual({ positive: 290, negative: 130, total: 420, compared: 370 })
  expect(ofHead.signals).toEqual({ positive: 471, negative: 99, total: 570, compared: 460 })
  expect(body.data.share).toBeCloseTo(460 / 830, 6)
})

test('a split of the common days that contradicts the expected share leaves the verdict undecided', async () => {
  const compare = async (share: number) => (await read(`base=${base}&head=${head}&share=${share}`)).body.data
  expect(await compare(0.55)).toEqual((await read(`base=${base}&head=${head}`)).body.data)
  const { verdict, difference, reason, notes } = await compare(0.4)
  expect({ verdict, difference }).toEqual({ verdict: 'undecided', difference: null })
  expect(reason).toStartWith('The split is not the expected one.')
  expect(notes).toHaveLength(2)
  expect(notes[0]).toStartWith('The head has 55.4 % of the signals on these days, not 40.0 %.')
})

test('since and until cut days, to the millisecond', async () => {
  const shown = async (query: string) =>
    (await read(`base=${base}&head=${head}&${query}`)).body.data.days.map(
      ({ date, base, head }: (typeof shownDays)[number]) => [date.slice(-2), base.positive, head.positive],
    )
  expect(await shown('since=2026-11-03&until=2026-11-05')).toEqual([
    ['03', 60, 160],
    ['04', 30, 180],
  ])
  expect(await shown('since=2026-11-03T10:07:00.001Z&until=2026-11-04T23:59:59.999Z')).toEqual([
    ['03', 0, 160],
    ['04', 30, 0],
  ])
  expect(await shown('since=2026-11-03T10:07:00.000Z&until=2026-11-04T00:00:00.000Z')).toEqual([['03', 60, 160]])
})

test.each([
  ['9999999', '8888888', 'Neither commit has signals.'],
  [base, '9999999', 'The head has no signals.'],
  [like, alike, 'There is no day with signals of both.'],
  ['5555555'.padEnd(40, 'c'), '5555555'.padEnd(40, 'd'), 'Neither commit has signals.'],
])('%s against %s is undecided, and says why', async (one, other, reason) => {
  const { data } = (await read(`base=${one}&head=${other}`)).body
  expect(data).toMatchObject({ reason, verdict: 'undecided', difference: null, signals_needed: null, share: null })
  expect(data.overlap).toEqual({ days: 0, from: null, until: null })
  expect(data.base.rate).toBeNull()
})

test.each([
  ['head=1111111', 'base'],
  [`base=111111&head=${head}`, 'base'],
  [`base=${base}&head=3333333`, 'head'],
  [`base=${base}&head=1111111A`, 'head'],
  [`base=4444444&head=${'4444444dd'.padEnd(40, '0')}`, 'head'],
  [`base=${base}&head=${head}&since=2026-11-02&until=2026-11-02`, 'since'],
  [`base=${base}&head=${head}&margin=1`, 'margin'],
  [`base=${base}&head=${head}&share=0`, 'share'],
  [`base=${base}&head=${head}&share=1`, 'share'],
])('%s is rejected and named', async (query, name) => {
  expect(await read(query)).toMatchObject(invalid(name))
})

test('an ambiguous beginning is enough if an entry has exactly this commit', async () => {
  await service.addHistory(tenant.prompt, [deployed('3333333cc', '2026-11-04T12:00:00.000Z')])
  const { data } = (await read(`base=3333333cc&head=${alike}`)).body
  expect(data.base).toMatchObject({ commit: '3333333cc', signals: { total: 18 } })
  expect(data.head.signals.total).toBe(4)
})

test('a name that is no hash may be short', async () => {
  const at = '2026-11-03T10:00:00.000Z'
  await addSignals(service, tenant.prompt, [
    ...signals(3, 1, { at, commit: 'v1' }),
    ...signals(4, 2, { at, commit: '😀😀😀É 2' }),
    ...signals(1, 1, { at, commit: '😀😀😀😀😀' }),
  ])
  const totalsOf = async (...names: string[]) => {
    const [base, head] = names.map(encodeURIComponent)
    const { data } = (await read(`base=${base}&head=${head}`)).body
    return [data.base.signals.total, data.head.signals.total]
  }
  expect(await totalsOf('V1', '😀😀😀É 2')).toEqual([4, 6])
  expect(await totalsOf('v1', '😀😀😀😀😀')).toEqual([4, 2])
})

const shortOf = (commit: string) => commit.slice(0, 7)
test.each([
  ['release-1', ['release-12', 'release-1'], 'release-1', ['release-1']],
  ['release-12', ['release-12', 'release-1'], 'release-12', ['release-12']],
  ['release-1', ['release-12'], 'release-1', ['release-1']],
  ['20260101', ['20260101123000'], '20260101', ['20260101']],
  ['abcdef0', ['abcdef012', 'abcdef01'], 'abcdef012', ['abcdef012', 'abcdef01']],
  [shortOf(base), [base, shortOf(base)], base, [base, shortOf(base)]],
  [base, [shortOf(base)], base, [base, shortOf(base)]],
  [head, [`${head}0`, head], head, [head]],
  ['3333333cc1', [like, alike, '3333333', '3333333cc1'], like, [like, '3333333cc1']],
])('%s among %p is %s', (given, known, commit, names) => {
  const commits = known.map((name) => ({ name, is_entry: true }))
  expect(resolveCommit(given, commits)).toEqual({ commit, names })
})
