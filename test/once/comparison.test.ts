import { expect, test } from 'bun:test'
import { createRandom } from '../../src/cli/demo_data.ts'
import { blockByDay, compare, type DayPair, designEffectOf, verdictFor } from '../../src/impact/compare.ts'
import { differenceOf, logEvidence, rateOf } from '../../src/impact/rate.ts'
import { addCounts, type Counts, divideCounts, totalOf } from '../../src/lib/counts.ts'
import { inFullRun } from '../full.ts'

const defaultMargin = 0.05

const side = (positive: number, total: number): Counts => ({ positive, negative: total - positive })

const compareGrowing = (base: Counts, head: Counts, margin = defaultMargin) =>
  compare(base, head, margin, { of: 'head', signals: totalOf(head) })

test('without signals there is no rate, no difference and no verdict', () => {
  expect(rateOf(side(0, 0))).toBeNull()
  const nothing = { difference: null, verdict: 'undecided' as const, signalsNeeded: null }
  expect(compareGrowing(side(0, 0), side(0, 0))).toEqual(nothing)
  expect(compareGrowing(side(80, 100), side(0, 0))).toEqual(nothing)
  expect(compareGrowing(side(0, 0), side(80, 100))).toEqual(nothing)
})

test('the evidence for a difference is that of the worked examples', () => {
  expect(logEvidence(side(800, 1_000), side(700, 1_000), 0)).toBeCloseTo(6.636, 3)
  expect(logEvidence(side(400, 500), side(350, 500), 0)).toBeCloseTo(0.626, 3)
})

test('verdicts follow the interval, and an undecided one says how many signals are missing', () => {
  expect(compareGrowing(side(800, 1_000), side(700, 1_000))).toEqual({
    difference: { value: -0.1, low: -0.187789, high: -0.011727 },
    verdict: 'worse',
    signalsNeeded: null,
  })
  expect(compareGrowing(side(700, 1_000), side(800, 1_000)).verdict).toBe('better')
  expect(compareGrowing(side(400, 500), side(350, 500))).toEqual({
    difference: { value: -0.1, low: -0.219893, high: 0.020845 },
    verdict: 'undecided',
    signalsNeeded: 1_600,
  })
  expect(compareGrowing(side(80_000, 100_000), side(80_100, 100_000)).verdict).toBe('same')
  // A difference that is surely there, and surely smaller than what matters.
  const small = [side(500_000, 1_000_000), side(520_000, 1_000_000)] as const
  expect(compareGrowing(...small).verdict).toBe('same')
  expect(compareGrowing(...small, 0).verdict).toBe('better')
  expect(compareGrowing(...small, 0.01).verdict).toBe('better')
  // A hundred signals before are too few for a difference this small, however many come after.
  expect(compareGrowing(side(80, 100), side(75, 100)).signalsNeeded).toBeNull()
  // Between two powers of two.
  const [base, head] = [side(0, 32.6613), side(5.5868, 20.1984)]
  expect(compare(base, head, 0.1, { of: 'head', signals: 47 }).signalsNeeded).toBe(620)
})

test('a verdict is not lost as signals arrive at the same rates', () => {
  const verdictAt = (total: number) => compareGrowing(side(60, 100), side(0.8 * total, total)).verdict
  expect(verdictAt(500)).toBe('undecided')
  expect([5_000, 29_500, 59_500, 1_000_000, 1_000_000_000].map(verdictAt)).toEqual(Array(5).fill('better'))
  const lost: string[] = []
  for (const total of [50, 100, 500, 5_000])
    for (const before of [0.3, 0.5, 0.7, 0.9])
      for (const after of [0.1, 0.25, 0.4, 0.55, 0.62, 0.66, 0.76, 0.8, 0.84, 0.98]) {
        const base = side(before * total, total)
        let last = 'undecided'
        for (let signals = 20; signals < 1e6; signals *= 1.5) {
          const { verdict } = compareGrowing(base, side(after * signals, signals), 0)
          if (last !== 'undecided' && verdict !== last) lost.push(`${before} of ${total} → ${after} at ${signals}`)
          last = verdict
        }
      }
  expect(lost).toEqual([])
})

test('the design effect is that of an example worked by hand', () => {
  const window = (...positive: number[]) => positive.map((one) => side(one, 100))
  // Residuals 0, 2, −2 and 0, 0: χ² = 8, 3 degrees of freedom. The products are −4, so ρ is cut to 0.
  expect(designEffectOf([window(50, 60, 40), [...window(50, 50), side(0, 4)]])).toBeCloseTo(8 / 3, 6)
  // χ² = 16, 3 degrees of freedom. The products are 4, −4 and 4, so ρ = 1/4 + (1 + 3/4) / 4.
  expect(designEffectOf([window(60, 60, 40, 40), []])).toBeCloseTo(1 + ((16 / 3 - 1) * 1.6875) / 0.3125, 6)
  expect(designEffectOf([window(50, 50), window(70, 70)])).toBe(1)
  expect(designEffectOf([window(10), window(90)])).toBe(1)
  expect(designEffectOf([[], window(100, 100, 100)])).toBe(1)
})

const seed = Number(process.env.TEST_SEED ?? 1)
const runs = inFullRun(1_000, 200)

/** Draws days of signals whose rate wanders by `drift` around 70 %, with a correlation from day to day. */
function createDrift(number: number, drift: number, lag: number) {
  const random = createRandom(number)
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  let offset = normal() * drift
  return {
    draw(total: number, change = 0): Counts {
      const rate = Math.min(Math.max(0.7 + offset + change, 0.01), 0.99)
      let positive = 0
      for (let drawn = 0; drawn < total; drawn += 1) if (random() < rate) positive += 1
      return side(positive, total)
    },
    endDay() {
      offset = lag * offset + Math.sqrt(1 - lag * lag) * normal() * drift
    },
  }
}

const isCalled = (base: Counts, head: Counts) =>
  ['better', 'worse'].includes(verdictFor(differenceOf(base, head), defaultMargin))

/** For each of 60 days after a change, with 14 days before it: whether it is called better or worse. */
function* callsByDay(number: number, perDay: number, drift: number, lag: number, change: number) {
  const days = createDrift(number, drift, lag)
  const draw = (by: number) => {
    const day = days.draw(perDay, by)
    days.endDay()
    return day
  }
  const before = Array.from({ length: 14 }, () => draw(0))
  const after: Counts[] = []
  while (after.length < 60) {
    after.push(draw(change))
    const effect = designEffectOf([before, after])
    yield isCalled(divideCounts(addCounts(before), effect), divideCounts(addCounts(after), effect))
  }
}

const percentOf = (number: number) => (100 * number) / runs
const medianOf = (numbers: number[]) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] as number
const repeat = <T>(run: (number: number) => T): T[] => Array.from({ length: runs }, (_, index) => run(seed + index))

test.each([
  [500, 0, 0, 0.3, 0.1],
  [500, 0.016, 0.9, 3.0, 1.1],
  [500, 0.04, 0, 0.3, 0],
  [500, 0.04, 0.9, 13.8, 2.5],
  [100, 0.04, 0.9, 5.9, 2.2],
])(
  `of histories with %d signals a day that drift by %d with lag %d, about %d %% are ever called (seed ${seed})`,
  (perDay, drift, lag, ever, last) => {
    const called = repeat((number) => [...callsByDay(number, perDay, drift, lag, 0)])
    const everCalled = percentOf(called.filter((days) => days.includes(true)).length)
    expect(Math.abs(everCalled - ever)).toBeLessThan(4)
    if (drift === 0) expect(everCalled).toBeLessThan(5)
    expect(Math.abs(percentOf(called.filter((days) => days.at(-1)).length) - last)).toBeLessThan(2.5)
  },
)

test.each([
  [500, 100, 2],
  [100, 98, 8],
])(
  `with %d signals a day a fall of 10 points is called in %d %% of histories, mostly by day %d (seed ${seed})`,
  (perDay, percent, day) => {
    const first = repeat((number) => {
      let looks = 0
      for (const called of callsByDay(number, perDay, 0, 0, -0.1)) {
        looks += 1
        if (called) return looks
      }
      return undefined
    }).filter((looks) => looks !== undefined)
    expect(percentOf(first.length)).toBeGreaterThanOrEqual(percent - 1)
    expect(medianOf(first)).toBeLessThanOrEqual(day)
  },
)

/** The first day on which two versions that run side by side are called, the head's share growing from 5 to 95 %. */
function firstCalled(number: number, change: number, combine: (days: DayPair[]) => { base: Counts; head: Counts }) {
  const drift = createDrift(number, 0.1, 0.9)
  const days: DayPair[] = []
  const length = 60
  return Array.from({ length }, (_, index) => index + 1).find((day) => {
    const ofHead = Math.round(500 * (0.05 + (0.9 * day) / length))
    days.push({ date: '', base: drift.draw(500 - ofHead), head: drift.draw(ofHead, change) })
    drift.endDay()
    const { base, head } = combine(days)
    return isCalled(base, head)
  })
}

test(`side by side, drift is not taken for a difference, and a fall of 10 points is found as soon (seed ${seed})`, () => {
  const pool = (days: DayPair[]) => ({
    base: addCounts(days.map(({ base }) => base)),
    head: addCounts(days.map(({ head }) => head)),
  })
  const calls = (change: number, combine: typeof pool) =>
    repeat((number) => firstCalled(number, change, combine)).filter((day) => day !== undefined)
  expect(percentOf(calls(0, pool).length)).toBeGreaterThan(60)
  expect(calls(0, blockByDay)).toEqual([])
  const [pooled, blocked] = [calls(-0.1, pool), calls(-0.1, blockByDay)]
  expect(percentOf(blocked.length)).toBe(100)
  expect(Math.abs(medianOf(blocked) - medianOf(pooled))).toBeLessThanOrEqual(1)
})

test('side by side, no side counts for more signals than it has, and with a constant share it counts for all', () => {
  const day = (base: Counts, head: Counts): DayPair => ({ date: '', base, head })
  const steady = [day(side(990, 1_000), side(6, 10)), day(side(1_995, 2_000), side(10, 20))]
  const { base, head } = blockByDay(steady)
  expect([base.positive, base.negative].map(Math.round)).toEqual([2_985, 15])
  expect([head.positive, head.negative].map(Math.round)).toEqual([16, 14])
  const changing = blockByDay([...steady, day(side(5, 10), side(500, 1_000))])
  expect(totalOf(changing.base)).toBeLessThan(3_010)
  expect(totalOf(changing.head)).toBeLessThan(1_030)
})
