// What the guides promise of verdicts, on simulated histories: how many are called without a change, and how soon one is.
import { expect, test } from 'bun:test'
import { createRandom } from '../../src/cli/demo_data.ts'
import { compareSides, compareWindows } from '../../src/impact/compare.ts'
import { type DayPair, isSplitWrong } from '../../src/impact/split.ts'
import { estimateWander } from '../../src/impact/wander.ts'
import type { Counts } from '../../src/lib/counts.ts'
import { inFullRun } from '../full.ts'

const runs = inFullRun(600, 150)
const seed = Number(process.env.TEST_SEED ?? 1)
/** Any difference counts: a margin would call small ones the same. */
const margin = 0
const looks = 60

type History = {
  perDay: number
  /** By how much the rate changes at the change. */
  change?: number
  /** Days before the base, in changes of 30 days, and days of the base. */
  past?: number
  base?: number
  /** How the rate wanders: its deviation, and the correlation of neighbouring days. */
  drift?: number
  correlation?: number
  /** By how much it rises each day, moves within the week, and is lower at weekends. */
  trend?: number
  week?: number
  weekend?: number
  rate?: number
  /** The day of the week of the first day. */
  start?: number
}

/** Draws the signals of one day after another. */
function createDays(number: number, history: History) {
  const { drift = 0, correlation = 0, trend = 0, week = 0, weekend = 0, rate = 0.7, start = 0 } = history
  const random = createRandom(number)
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  let [offset, day] = [normal() * drift, start]
  return {
    draw(total: number, change = 0): Counts {
      const ofWeek = week * Math.sin((2 * Math.PI * day) / 7) - (day % 7 >= 5 ? weekend : 0)
      const today = Math.min(Math.max(rate + offset + change + trend * day + ofWeek, 0.01), 0.99)
      let positive = 0
      for (let drawn = 0; drawn < total; drawn += 1) if (random() < today) positive += 1
      return { positive, negative: total - positive }
    },
    endDay() {
      offset = correlation * offset + Math.sqrt(1 - correlation ** 2) * normal() * drift
      day += 1
    },
  }
}

/** The day on which a change is first called better or worse, and rightly if it changed something; undefined if never. */
function firstCalled(number: number, history: History): number | undefined {
  const { perDay, change = 0, past = 60, base: baseDays = 14 } = history
  const days = createDays(number, history)
  const drawDay = (by = 0) => {
    const day = days.draw(perDay, by)
    days.endDay()
    return day
  }
  const drawDays = (length: number) => Array.from({ length }, () => drawDay())
  const earlier = Array.from({ length: past / 30 }, () => drawDays(30))
  const base = drawDays(baseDays)
  const head: Counts[] = []
  while (head.length < looks) {
    head.push(drawDay(change))
    const wander = estimateWander([...earlier, base, head])
    const { verdict } = compareWindows(base, head, wander, { margin, isOver: true })
    const isCalled =
      change === 0 ? ['better', 'worse'].includes(verdict) : verdict === (change > 0 ? 'better' : 'worse')
    if (isCalled) return head.length
  }
  return undefined
}

const percentOf = (days: number[]) => (100 * days.length) / runs
const medianOf = (numbers: number[]) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Infinity
const repeat = (run: (number: number) => number | undefined) =>
  Array.from({ length: runs }, (_, index) => run(seed + index)).filter((day) => day !== undefined)

/** In percent, as in the table of docs/signals.md. */
const still: [string, History, number][] = [
  ['signals are independent', { perDay: 100 }, 2],
  ['days differ by 3 points', { perDay: 500, drift: 0.03 }, 2],
  ['the rate drifts by 2 points', { perDay: 500, drift: 0.02, correlation: 0.95 }, 4],
  ['the rate drifts by 4 points', { perDay: 500, drift: 0.04, correlation: 0.9 }, 8],
  ['it drifts by 4 points, with few signals', { perDay: 100, drift: 0.04, correlation: 0.9 }, 15],
  ['it drifts by 4 points, without a past', { perDay: 500, drift: 0.04, correlation: 0.9, past: 0 }, 15],
  ['the rate rises by a point in ten days', { perDay: 500, rate: 0.6, trend: 0.001 }, 8],
  ['the base is a weekend', { perDay: 500, week: 0.05, past: 0, base: 2, start: 5 }, 5],
  ['weekends are lower, and the base is five weekdays', { perDay: 500, weekend: 0.1, past: 0, base: 5 }, 1],
]

test.each(still)('before and after, where %s, few histories are called', (_, history, most) => {
  expect(percentOf(repeat((number) => firstCalled(number, history)))).toBeLessThanOrEqual(most)
})

const changed: [string, History, number, number][] = [
  ['10 points with 100 signals a day', { perDay: 100, change: -0.1 }, 98, 4],
  ['5 points with 300 signals a day', { perDay: 300, change: -0.05 }, 96, 7],
  ['15 points with 20 signals a day, without a past', { perDay: 20, change: -0.15, past: 0 }, 88, 10],
  ['10 points with a base of five days', { perDay: 100, change: -0.1, past: 0, base: 5 }, 86, 7],
  ['5 points with 300 signals a day, without a past', { perDay: 300, change: -0.05, past: 0 }, 88, 14],
  ['10 points under drift', { perDay: 500, change: -0.1, drift: 0.04, correlation: 0.9 }, 80, 3],
]

test.each(changed)('before and after, a fall of %s is found in time', (_, history, percent, day) => {
  const found = repeat((number) => firstCalled(number, history))
  expect(percentOf(found)).toBeGreaterThanOrEqual(percent)
  expect(medianOf(found)).toBeLessThanOrEqual(day)
})

type Experiment = History & { ofHead: (day: number) => number }

/** The day on which two versions that run side by side are first called; undefined if never. */
function firstDecided(number: number, { perDay, change = 0, ofHead, ...history }: Experiment): number | undefined {
  const days = createDays(number, { perDay, ...history })
  const pairs: DayPair[] = []
  while (pairs.length < looks) {
    const head = ofHead(pairs.length)
    pairs.push({ date: '', base: days.draw(perDay - head), head: days.draw(head, change) })
    days.endDay()
    const { verdict } = compareSides(pairs, margin)
    if (['better', 'worse'].includes(verdict)) return pairs.length
  }
  return undefined
}

const growing = (day: number) => Math.round(500 * (0.05 + (0.9 * day) / looks))

const equal: [string, Experiment][] = [
  ['50 and 50 signals a day', { perDay: 100, ofHead: () => 50 }],
  ['a drift of 10 points and a growing share', { perDay: 500, drift: 0.1, correlation: 0.9, ofHead: growing }],
  ['a tenth of 400 signals, at a rate of 95 %', { perDay: 400, rate: 0.95, ofHead: () => 40 }],
  ['3 and 2 signals a day', { perDay: 5, ofHead: () => 2 }],
]

test.each(equal)('side by side, equal versions with %s are called in less than 4 %', (_, experiment) => {
  expect(percentOf(repeat((number) => firstDecided(number, experiment)))).toBeLessThan(4)
})

const different: [string, Experiment, number, number][] = [
  ['10 points at 50 and 50 signals a day', { perDay: 100, change: 0.1, ofHead: () => 50 }, 98, 7],
  ['5 points at 150 and 150', { perDay: 300, change: -0.05, ofHead: () => 150 }, 98, 12],
  ['6 points at a tenth of 400', { perDay: 400, change: 0.06, ofHead: () => 40 }, 98, 14],
  ['3 points at 500 and 500, at a rate of 90 %', { perDay: 1_000, change: -0.03, rate: 0.9, ofHead: () => 500 }, 98, 6],
]

test.each(different)('side by side, a difference of %s is found in time', (_, experiment, percent, day) => {
  const found = repeat((number) => firstDecided(number, experiment))
  expect(percentOf(found)).toBeGreaterThanOrEqual(percent)
  expect(medianOf(found)).toBeLessThanOrEqual(day)
})

/** The day on which the split is first called wrong, if chance gives the head this share; undefined if never. */
function firstSplit(number: number, perDay: number, drawn: number, expected: number): number | undefined {
  const random = createRandom(number)
  const pairs: DayPair[] = []
  for (let day = 1; day <= looks; day += 1) {
    const head = Array.from({ length: perDay }, random).filter((one) => one < drawn).length
    const pair = { date: '', base: { positive: perDay - head, negative: 0 }, head: { positive: head, negative: 0 } }
    // Only days with signals of both count.
    if (head > 0 && head < perDay) pairs.push(pair)
    if (isSplitWrong(pairs, expected)) return day
  }
  return undefined
}

test.each([
  [100, 0.5],
  [400, 0.1],
  [5, 0.5],
  // The head is missing on most days, so it has more than its share of the others.
  [10, 0.05],
  [3, 0.9],
])('with %i signals a day, a split of %d that holds is never called wrong', (perDay, share) => {
  expect(repeat((number) => firstSplit(number, perDay, share, share))).toBeEmpty()
})

test.each([
  [100, 0.6, 0.5, 6],
  [300, 0.45, 0.5, 8],
  [400, 0.15, 0.1, 3],
])('with %i signals a day, a split of %d instead of %d is found in time', (perDay, drawn, expected, day) => {
  const found = repeat((number) => firstSplit(number, perDay, drawn, expected))
  expect(percentOf(found)).toBeGreaterThanOrEqual(98)
  expect(medianOf(found)).toBeLessThanOrEqual(day)
})
