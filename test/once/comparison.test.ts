import { expect, test } from 'bun:test'
import { createRandom } from '../../src/cli/demo_data.ts'
import { compare, logBeta, logEvidence, logGamma } from '../../src/impact/compare.ts'
import { type Counts, rateOf } from '../../src/impact/rate.ts'

const defaultMargin = 0.05
const decidedAt = Math.log(20)

const side = (positive: number, total: number): Counts => ({ positive, negative: total - positive })

function draw(random: () => number, rate: number, total: number): Counts {
  let positive = 0
  for (let drawn = 0; drawn < total; drawn += 1) if (random() < rate) positive += 1
  return side(positive, total)
}

/** Histories of 1,000 signals before a change, with a look after each signal after it: how many are ever called. */
function countCalled(seed: number, before: number, after: number, looks: number): number {
  const random = createRandom(seed)
  let called = 0
  for (let history = 0; history < 2_000; history += 1) {
    const base = draw(random, before, 1_000)
    const head = side(0, 0)
    for (let look = 0; look < looks; look += 1) {
      if (random() < after) head.positive += 1
      else head.negative += 1
      if (logEvidence(base, head, 0) >= decidedAt) {
        called += 1
        break
      }
    }
  }
  return called
}

test('the logarithm of the gamma function is exact to twelve digits', () => {
  const known: [number, number][] = [
    [1, 0],
    [2, 0],
    [0.5, Math.log(Math.PI) / 2],
    [5, Math.log(24)],
    [10.5, 13.94062521940376],
    [101, 363.73937555556347],
    [1e7 + 1, 151180965.48756132],
  ]
  for (const [x, expected] of known) {
    expect(Math.abs(logGamma(x) - expected)).toBeLessThanOrEqual(1e-12 * Math.max(1, Math.abs(expected)))
  }
  // B(a, b) is 1 / (a · C(a + b - 1, a)) for whole numbers.
  expect(logBeta(1, 1)).toBeCloseTo(0, 12)
  expect(logBeta(3, 4)).toBeCloseTo(Math.log(1 / 60), 12)
})

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
  const nothing = { difference: null, verdict: 'undecided' as const, signalsNeeded: null }
  expect(compare(side(0, 0), side(0, 0), defaultMargin)).toEqual(nothing)
  expect(compare(side(80, 100), side(0, 0), defaultMargin)).toEqual(nothing)
  expect(compare(side(0, 0), side(80, 100), defaultMargin)).toEqual(nothing)
})

test('the evidence for a difference is that of the worked examples', () => {
  expect(logEvidence(side(800, 1_000), side(700, 1_000), 0)).toBeCloseTo(6.636, 3)
  expect(logEvidence(side(400, 500), side(350, 500), 0)).toBeCloseTo(0.626, 3)
})

test('verdicts follow the interval, and an undecided one says how many signals are missing', () => {
  const verdictOf = (base: Counts, head: Counts, margin = defaultMargin) => compare(base, head, margin)
  expect(verdictOf(side(800, 1_000), side(700, 1_000))).toEqual({
    difference: { value: -0.1, low: -0.184834, high: -0.014716 },
    verdict: 'worse',
    signalsNeeded: null,
  })
  expect(verdictOf(side(700, 1_000), side(800, 1_000))).toEqual({
    difference: { value: 0.1, low: 0.014716, high: 0.184834 },
    verdict: 'better',
    signalsNeeded: null,
  })
  expect(verdictOf(side(400, 500), side(350, 500))).toEqual({
    difference: { value: -0.1, low: -0.21557, high: 0.016448 },
    verdict: 'undecided',
    signalsNeeded: 840,
  })
  expect(verdictOf(side(80_000, 100_000), side(80_100, 100_000)).verdict).toBe('same')
  // A difference that is surely there, and surely smaller than what matters.
  const small = [side(500_000, 1_000_000), side(520_000, 1_000_000)] as const
  expect(verdictOf(...small).verdict).toBe('same')
  expect(verdictOf(...small, 0).verdict).toBe('better')
  expect(verdictOf(...small, 0.01).verdict).toBe('better')
  // A hundred signals before are too few for a difference this small, however many come after.
  expect(verdictOf(side(80, 100), side(75, 100)).signalsNeeded).toBeNull()
})

test('as many signals more as are said to be needed do decide it, at the same rates', () => {
  const [base, head] = [side(1_000, 1_300), side(310, 450)]
  const { verdict, signalsNeeded } = compare(base, head, defaultMargin)
  expect(verdict).toBe('undecided')
  const grown = (more: number) => side((310 / 450) * (450 + more), 450 + more)
  expect(compare(base, grown(signalsNeeded as number), defaultMargin).verdict).toBe('worse')
  expect(compare(base, grown((signalsNeeded as number) * 0.9), defaultMargin).verdict).toBe('undecided')
})

test('interval and verdict never contradict the evidence, whatever was counted', () => {
  const random = createRandom(15)
  for (let round = 0; round < 2_000; round += 1) {
    const count = () => Math.floor(random() ** 3 * 10 ** (random() * 5))
    const counts = () => ({ positive: count(), negative: count() })
    const [base, head] = [counts(), counts()]
    const margin = random() * 0.2
    const { difference, verdict } = compare(base, head, margin)
    if (!difference) continue
    const { value, low, high } = difference
    expect(low).toBeLessThanOrEqual(value)
    expect(high).toBeGreaterThanOrEqual(value)
    const isRuledOut = (at: number) => logEvidence(base, head, at) >= decidedAt
    // The ends are rounded outwards by at most a millionth, and everything beyond them is ruled out.
    if (low > -1) expect([low, low + 2e-6].map(isRuledOut)).toEqual([true, false])
    if (high < 1) expect([high, high - 2e-6].map(isRuledOut)).toEqual([true, false])
    const expected = low >= -margin && high <= margin ? 'same' : low > 0 ? 'better' : high < 0 ? 'worse' : 'undecided'
    expect(verdict).toBe(expected)
  }
})

test('extreme counts give finite answers within a millisecond', () => {
  const sides = [
    [0, 0],
    [0, 1],
    [1, 1],
    [0, 20],
    [20, 20],
    [1, 10_000_000],
    [0, 10_000_000],
    [5_000_000, 10_000_000],
    [9_999_999, 10_000_000],
    [10_000_000, 10_000_000],
  ].map(([positive, total]) => side(positive as number, total as number))
  const pairs = sides.flatMap((base) => sides.map((head) => [base, head] as const))
  const compareAll = () => pairs.map(([base, head]) => compare(base, head, defaultMargin))
  for (const { difference, signalsNeeded } of compareAll()) {
    const { value = 0, low = -1, high = 1 } = difference ?? {}
    expect([value, low, high, signalsNeeded ?? 0].every(Number.isFinite)).toBeTrue()
    expect(-1 <= low && low <= value && value <= high && high <= 1).toBeTrue()
  }
  const beganAt = process.cpuUsage()
  compareAll()
  const { user, system } = process.cpuUsage(beganAt)
  expect((user + system) / 1_000 / pairs.length).toBeLessThan(1)
})

test('a look after each of 5,000 signals calls fewer than one history in twenty in which nothing has changed', () => {
  expect(countCalled(1, 0.8, 0.8, 5_000)).toBeLessThan(2_000 * 0.05)
})

test('a fall from 80 to 70 % is called within 1,500 signals in nine histories of ten', () => {
  expect(countCalled(2, 0.8, 0.7, 1_500)).toBeGreaterThan(2_000 * 0.9)
})
