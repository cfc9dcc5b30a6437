import { expect, test } from 'bun:test'
import { createRandom } from '../../src/cli/demo_data.ts'
import { compare, verdictFor } from '../../src/impact/compare.ts'
import { differenceOf, type Estimate, logBeta, logGamma, rateOf } from '../../src/impact/rate.ts'
import { type Counts, totalOf } from '../../src/lib/counts.ts'
import { inFullRun } from '../full.ts'

const side = (positive: number, total: number): Counts => ({ positive, negative: total - positive })

const compareGrowing = (base: Counts, head: Counts, margin = 0.05) =>
  compare(base, head, margin, { of: 'head', signals: totalOf(head) })

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

/** The two confidence sequences, written down as they are defined, and slowly. */
function bruteInterval(base: Counts, head: Counts): { low: number; high: number } {
  const logFactorial = (n: number) => Array.from({ length: n }, (_, i) => Math.log(i + 1)).reduce((a, b) => a + b, 0)
  const mixture = ({ positive: s, negative: f }: Counts) => logFactorial(s) + logFactorial(f) - logFactorial(s + f + 1)
  const likelihood = ({ positive: s, negative: f }: Counts, p: number) =>
    (s && s * Math.log(p)) + (f && f * Math.log(1 - p))
  const [ofBase, ofHead] = [mixture(base), mixture(head)]
  const evidence = (difference: number) => {
    let [low, high] = [Math.max(0, -difference), Math.min(1, 1 - difference)]
    const at = (p: number) => likelihood(base, p) + likelihood(head, Math.min(Math.max(p + difference, 0), 1))
    for (let step = 0; step < 100; step += 1) {
      const third = (high - low) / 3
      if (at(low + third) < at(high - third)) low += third
      else high -= third
    }
    return ofBase + ofHead - at((low + high) / 2)
  }
  const reach = (from: number, to: number, isRuledOut: (at: number) => boolean) => {
    let [inner, outer] = [from, to]
    if (!isRuledOut(to)) return to
    for (let step = 0; step < 40; step += 1) {
      const middle = (inner + outer) / 2
      if (isRuledOut(middle)) outer = middle
      else inner = middle
    }
    return outer
  }
  const ends = (counts: Counts, ofCounts: number) =>
    [0, 1].map((limit) =>
      reach(counts.positive / totalOf(counts), limit, (p) => ofCounts - likelihood(counts, p) >= Math.log(80)),
    ) as [number, number]
  const observed = head.positive / totalOf(head) - base.positive / totalOf(base)
  const [low1, high1] = ends(base, ofBase)
  const [low2, high2] = ends(head, ofHead)
  const isRuledOut = (difference: number) => evidence(difference) >= Math.log(40)
  return {
    low: Math.max(reach(observed, -1, isRuledOut), low2 - high1),
    high: Math.min(reach(observed, 1, isRuledOut), high2 - low1),
  }
}

/** For these, Newton's method starts a rounding error away from the lowest or highest possible rate. */
const nearTheEnds = ['0/1 10/14', '4/6 12/12', '8/11 1/11', '4/12 1/2', '0/12 2/18', '1/4 2/24'].map(
  (pair) => pair.split(' ').map((one) => side(...(one.split('/').map(Number) as [number, number]))) as [Counts, Counts],
)

test('the interval is the intersection of the two sequences, rounded outwards, and the verdict is read from it', () => {
  const random = createRandom(15)
  const count = () => Math.floor(random() ** 3 * 10 ** (random() * 4))
  const counts = (): Counts => ({ positive: count(), negative: count() })
  const pairs = Array.from({ length: inFullRun(1_000, 150) }, (): [Counts, Counts] => [counts(), counts()])
  for (const [base, head] of [...nearTheEnds, ...pairs]) {
    const margin = random() * 0.2
    const { difference, verdict } = compareGrowing(base, head, margin)
    if (!difference) continue
    const { value, low, high } = difference
    const exact = bruteInterval(base, head)
    const shown = JSON.stringify([base, head])
    expect(Math.abs(exact.low - low - 5e-7), shown).toBeLessThan(5.2e-7)
    expect(Math.abs(high - exact.high - 5e-7), shown).toBeLessThan(5.2e-7)
    expect(low <= value && value <= high, shown).toBeTrue()
    const expected = low >= -margin && high <= margin ? 'same' : low > 0 ? 'better' : high < 0 ? 'worse' : 'undecided'
    expect(verdict, shown).toBe(expected)
  }
})

test('the number of signals needed is the smallest that decides', () => {
  const random = createRandom(5)
  const seen = { number: 0, none: 0 }
  for (let round = 0; round < inFullRun(1_500, 60); round += 1) {
    const [ofBase, ofHead] = [10 ** (random() * 4), 10 ** (random() * 4)].map(Math.ceil) as [number, number]
    const rate = random()
    const later = Math.min(Math.max(rate + (random() - 0.5) * 0.3, 0), 1)
    const [base, head] = [side(Math.round(ofBase * rate), ofBase), side(Math.round(ofHead * later), ofHead)]
    const margin = random() < 0.5 ? 0 : 0.1
    const growsBoth = random() < 0.3
    const signals = growsBoth ? ofBase + ofHead : ofHead
    const { verdict, signalsNeeded } = compare(base, head, margin, { of: growsBoth ? 'both' : 'head', signals })
    if (verdict !== 'undecided') continue
    const isDecidedWith = (more: number) => {
      const factor = (signals + more) / signals
      const grow = ({ positive, negative }: Counts) => ({ positive: positive * factor, negative: negative * factor })
      const difference = differenceOf(growsBoth ? grow(base) : base, grow(head))
      return verdictFor(difference, margin) !== 'undecided'
    }
    const shown = JSON.stringify({ base, head, margin, growsBoth, signalsNeeded })
    // Rounding to two digits adds less than a tenth.
    const below = signalsNeeded === null ? 2 ** 20 : Math.floor(signalsNeeded * 0.9)
    for (let more = 1; more < below; more = Math.ceil(more * 1.08)) expect(isDecidedWith(more), shown).toBeFalse()
    if (signalsNeeded !== null) expect(isDecidedWith(signalsNeeded), shown).toBeTrue()
    seen[signalsNeeded === null ? 'none' : 'number'] += 1
  }
  expect(Math.min(seen.number, seen.none)).toBeGreaterThan(10)
})

test('extreme counts and fractions give finite answers within a millisecond', () => {
  const sides = [
    [0, 0],
    [0, 1],
    [0.2, 0.7],
    [0, 20],
    [20, 20],
    [1, 10_000_000],
    [333.3, 1000.1],
    [500_000_000, 1_000_000_000],
    [999_999_999, 1_000_000_000],
    [1_000_000_000, 1_000_000_000],
  ].map(([positive, total]) => side(positive as number, total as number))
  const pairs = sides.flatMap((base) => sides.map((head) => [base, head] as const))
  const compareAll = () => pairs.map(([base, head]) => compareGrowing(base, head))
  for (const { difference, signalsNeeded } of compareAll()) {
    const { value = 0, low = -1, high = 1 } = difference ?? {}
    expect([value, low, high, signalsNeeded ?? 0].every(Number.isFinite)).toBeTrue()
    expect(-1 <= low && low <= value && value <= high && high <= 1).toBeTrue()
  }
  const { low, high } = compareGrowing(side(8e8, 1e9), side(7e8, 1e9)).difference as Estimate
  expect(high - low).toBeLessThan(3e-4)
  const beganAt = process.cpuUsage()
  compareAll()
  const { user, system } = process.cpuUsage(beganAt)
  expect((user + system) / 1_000 / pairs.length).toBeLessThan(1)
})
