import { expect, test } from 'bun:test'
import { createRandom } from '../../src/cli/demo_data.ts'
import { compareSides, compareWindows, verdictFor } from '../../src/impact/compare.ts'
import { type Estimate, estimateDifference, rateOf } from '../../src/impact/rate.ts'
import { type DayPair, logSplitEvidence } from '../../src/impact/split.ts'
import { estimateWander, varianceBetween, type Wander } from '../../src/impact/wander.ts'
import type { Counts } from '../../src/lib/counts.ts'

const side = (positive: number, total: number): Counts => ({ positive, negative: total - positive })

/** Days of a hundred signals. */
const window = (...positive: number[]): Counts[] => positive.map((one) => side(one, 100))

const repeat = (day: Counts, days: number): Counts[] => Array.from({ length: days }, () => day)

const still: Wander = { variance: 0, correlation: 0, days: 0 }

const compare = (base: Counts[], head: Counts[], { margin = 0.05, isOver = false, wander = still } = {}) =>
  compareWindows(base, head, wander, { margin, isOver })

const pair = (base: Counts, head: Counts, date = '2026-11-01'): DayPair => ({ date, base, head })

const near = (difference: Estimate | null, low: number, high: number) => {
  expect(difference?.low).toBeCloseTo(low, 5)
  expect(difference?.high).toBeCloseTo(high, 5)
}

test.each([
  [81, 263, 0.2553, 0.3662],
  [15, 148, 0.0624, 0.1605],
  [0, 20, 0, 0.1611],
  [1, 29, 0.0061, 0.1718],
  [29, 29, 0.883, 1],
])('the interval of %d positive signals of %d is that of the literature', (positive, total, low, high) => {
  const rate = rateOf(side(positive, total))
  expect(rate?.value).toBeCloseTo(positive / total, 6)
  expect([rate?.low, rate?.high].map((end) => Number(end?.toFixed(4)))).toEqual([low, high])
})

test('without signals there is no rate, no difference and no verdict', () => {
  expect(rateOf(side(0, 0))).toBeNull()
  const nothing = { difference: null, verdict: 'undecided' as const, signals_needed: null }
  expect(compare([], [])).toEqual(nothing)
  expect(compare(window(80), [])).toEqual(nothing)
  expect(compare([], window(80))).toEqual(nothing)
  expect(compareSides([pair(side(8, 10), side(0, 0))], 0.05).difference).toBeNull()
})

test('side by side, the difference is that of two examples worked by hand', () => {
  // Weight 500, p = 1501/2002.
  const one = compareSides([pair(side(700, 1_000), side(800, 1_000))], 0.05)
  expect(one).toMatchObject({ verdict: 'better', difference: { value: 0.1 }, share: 0.5 })
  near(one.difference, 0.039791, 0.160209)
  // Weights 8 and 10: (8 · 0.15 + 10 · 0.2) / 18, p = 64/92.
  const two = compareSides([pair(side(30, 40), side(9, 10)), pair(side(10, 20), side(14, 20))], 0.05)
  expect(two).toMatchObject({ verdict: 'undecided', difference: { value: 0.177778 } })
  near(two.difference, -0.233458, 0.589013)
})

test('before and after, the difference is that of an example worked by hand', () => {
  // 400 of 500 on seven days, then 70 of 100 on one: p = 471/602, D(0.5; 7, 1) = 1.064094, s² = 0.002468695.
  const before = [...repeat(side(60, 70), 5), side(50, 75), side(50, 75)]
  const wander = { variance: 4e-4, correlation: 0.5, days: 8 }
  expect(varianceBetween(wander, 7, 1) / wander.variance).toBeCloseTo(1.064094, 6)
  const { difference, verdict } = compare(before, window(70), { wander })
  expect(difference?.value).toBe(-0.1)
  near(difference, -0.266418, 0.066418)
  expect(verdict).toBe('undecided')
})

test('how the rate wanders is that of two examples worked by hand', () => {
  // Distances 0.1, 0.1, −0.1, −0.1: squares 0.04 less 4 · 0.0025; products 0.01 − 0.01 + 0.01.
  const one = estimateWander([window(60, 60, 40, 40)])
  expect(one.variance).toBeCloseTo(0.001892275, 9)
  expect(one.correlation).toBeCloseTo(0.549359, 6)
  expect(one.days).toBe(4)
  // Each change has its own mean, and a day of four signals tells nothing.
  const two = estimateWander([window(50, 60, 40), [...window(50, 50), side(0, 4)]])
  expect(two.variance).toBeCloseTo(0.000872334, 9)
  expect(two.correlation).toBeCloseTo(0.14407, 6)
  expect(two.days).toBe(5)
  expect(estimateWander([])).toEqual({
    variance: expect.closeTo(0.000625, 12),
    correlation: expect.closeTo(0.9, 9),
    days: 0,
  })
})

test('only the last 90 days tell how the rate wanders', () => {
  const recent = [...repeat(side(50, 100), 45), ...repeat(side(60, 100), 45)]
  expect(estimateWander([repeat(side(1, 100), 30), recent])).toEqual(estimateWander([recent]))
  expect(estimateWander([[...repeat(side(1, 100), 30), ...recent]])).toEqual(estimateWander([recent]))
})

test('the days before the last 90 are not read', () => {
  const unread = {
    negative: 0,
    get positive(): number {
      throw new Error('This day was read.')
    },
  }
  const recent = repeat(side(50, 100), 90)
  expect(() => estimateWander([[unread], [unread, ...recent]])).not.toThrow()
})

test('a difference is unknown before there are 50 signals of each, or 20 side by side', () => {
  const unknown = (value: number) => ({ value, low: -1, high: 1 })
  const week = repeat(side(80, 100), 7)
  expect(compare(week, [side(0, 49)]).difference).toEqual(unknown(-0.8))
  expect(compare([side(0, 49)], week).difference).toEqual(unknown(0.8))
  expect(compare(week, [side(0, 50)]).verdict).toBe('worse')
  expect(compareSides([pair(side(0, 19), side(1_000, 1_000))], 0.05).difference).toEqual(unknown(1))
  expect(compareSides([pair(side(0, 20), side(1_000, 1_000))], 0.05).verdict).toBe('better')
})

test('a difference is unknown before either change has a week', () => {
  const days = (number: number) => repeat(side(80, 100), number)
  const lower = (number: number) => repeat(side(20, 100), number)
  expect(compare(days(6), lower(6)).verdict).toBe('undecided')
  expect(compare(days(6), lower(7)).verdict).toBe('worse')
  expect(compare(days(7), lower(1)).verdict).toBe('worse')
})

test('the verdict is read from the interval', () => {
  const random = createRandom(15)
  for (let round = 0; round < 1_000; round += 1) {
    const [value, margin] = [random() - 0.5, random() * 0.2]
    const { low, high } = estimateDifference(value, 10 ** -(2 + 4 * random()), 1 / 40)
    const expected = low >= -margin && high <= margin ? 'same' : low > 0 ? 'better' : high < 0 ? 'worse' : 'undecided'
    expect(verdictFor({ value, low, high }, margin)).toBe(expected)
    expect(low < value && value < high).toBeTrue()
  }
  // A difference that is surely there, and surely smaller than what matters.
  const small = { value: 0.02, low: 0.015, high: 0.025 }
  expect([0.05, 0.01, 0].map((margin) => verdictFor(small, margin))).toEqual(['same', 'better', 'better'])
})

test('the number of signals needed is the smallest of two digits that decides', () => {
  const base = repeat(side(80, 100), 14)
  const { signals_needed: signalsNeeded } = compare(base, window(74))
  const grown = (more: number) => compare(base, [side(0.74 * (100 + more), 100 + more)])
  expect(signalsNeeded).toBe(780)
  expect(grown(signalsNeeded as number).verdict).toBe('worse')
  expect(grown((signalsNeeded as number) - 10).verdict).toBe('undecided')
  expect(compare(base, window(74), { isOver: true }).signals_needed).toBeNull()
  // A hundred signals before are too few for a difference this small, however many come after.
  expect(compare(window(80), window(75)).signals_needed).toBeNull()
  // Side by side both grow, and the smaller one needs 20.
  expect(compareSides([pair(side(0, 2), side(2, 2))], 0.05).signals_needed).toBe(36)
})

test('the evidence against a split is that of examples worked by hand', () => {
  const evidence = (share: number, ...days: [base: number, head: number][]) =>
    Math.exp(
      logSplitEvidence(
        days.map(([base, head]) => pair(side(0, base), side(head, head))),
        share,
      ),
    )
  expect(evidence(0.5)).toBeCloseTo(1, 12)
  // 1!·1!/3! · 2² · (1 − ¼ − ¼) = 1/3.
  expect(evidence(0.5, [1, 1])).toBeCloseTo(1 / 3, 12)
  // 2!·1!/4! / (¾ · (¼)²) · (1 − (¼)³ − (¾)³) = 1/12 · 64/3 · 36/64 = 1.
  expect(evidence(0.25, [1, 2])).toBeCloseTo(1, 12)
  // 10!·40!/51! · 2⁵⁰ = 2⁵⁰/(51 · 10,272,278,170), and both days have signals of both but for 2⁻²⁴ twice.
  expect(evidence(0.5, [5, 20], [5, 20]) / (2 ** 50 / (51 * 10_272_278_170))).toBeCloseTo((1 - 2 ** -24) ** 2, 9)
})

test('a split that contradicts the expected share leaves the verdict open, and says why', () => {
  const split = (base: number, head: number, share?: number) =>
    compareSides([pair(side(0, base), side(head, head))], 0.05, share)
  // The evidence is 2⁵⁰/(51 · 50 over 11) = 591, then 2⁵⁰/(51 · 50 over 10) = 2,149.
  expect(split(11, 39, 0.5)).toEqual(split(11, 39))
  expect(split(10, 40)).toMatchObject({ reason: null, notes: [] })
  expect(split(200, 800)).toMatchObject({ verdict: 'better', reason: null })
  for (const wrong of [split(10, 40, 0.5), split(200, 800, 0.5)]) {
    expect(wrong).toMatchObject({ verdict: 'undecided', difference: null, signals_needed: null, share: 0.8 })
    expect(wrong.reason).toContain('one version is answered more often')
    expect(wrong.notes).toEqual([
      'The head has 80.0 % of the signals on these days, not 50.0 %. Chance does that in fewer than 1 of 1,000 comparisons.',
    ])
  }
  expect(split(200, 800, 0.8)).toEqual(split(200, 800))
  expect(split(0, 800, 0.5).reason).toBe('The base has no signals.')
})

test('extreme counts give finite answers', () => {
  const totals = [1, 20, 1_000_000_000]
  const sides = totals.flatMap((total) => [0, 0.5, 1].map((rate) => side(rate * total, total)))
  for (const base of sides) {
    for (const head of sides) {
      for (const days of [1, 1_000]) {
        const wander = estimateWander([repeat(base, days), repeat(head, days)])
        const compared = compare(repeat(base, days), repeat(head, days), { wander })
        const { value, low, high } = compared.difference as Estimate
        expect([value, low, high, compared.signals_needed ?? 0].every(Number.isFinite)).toBeTrue()
        expect(-1 <= low && low <= value && value <= high && high <= 1).toBeTrue()
      }
    }
  }
})
