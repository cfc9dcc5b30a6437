// A rate that changed although nothing in git did: by hand, and what the guide promises, on simulated years.
import { expect, test } from 'bun:test'
import { createRandom } from '../../src/cli/demo_data.ts'
import type { DayCounts } from '../../src/impact/attribute.ts'
import { findRateChange } from '../../src/impact/rate_change.ts'
import { inFullRun } from '../full.ts'

const dateOf = (day: number) => new Date(Date.UTC(2026, 0, 1 + day))
const dayOf = (day: number, positive: number, total: number): DayCounts => ({
  date: dateOf(day).toISOString().slice(0, 10),
  positive,
  negative: total - positive,
})
const noonOf = (day: number) => new Date(dateOf(day).getTime() + 43_200_000)

/** As many days with the first rate, then 7 with the second, of 100 signals a day. */
const steady = (before: number, first: number, second: number) =>
  Array.from({ length: before + 7 }, (_, day) => dayOf(day, day < before ? first : second, 100))

test('the last 7 days are compared with those before, by hand', () => {
  const days = steady(60, 70, 55)
  // Steady days leave the least wander, 0.5 points with a correlation of 0.98: with that of chance, a variance of 0.000359.
  expect(findRateChange(days, noonOf(67))).toEqual({
    from: '2026-03-02',
    until: '2026-03-08',
    before: { value: 0.7, low: 0.68828, high: 0.711464 },
    after: { value: 0.55, low: 0.512973, high: 0.586482 },
    difference: { value: -0.15, low: -0.226619, high: -0.073381 },
  })
  expect(findRateChange(steady(60, 70, 69), noonOf(67))).toBeNull()
  expect(findRateChange(steady(60, 55, 70), noonOf(67))?.difference.value).toBe(0.15)
})

test('today, days more than 67 days ago, and a past of less than 21 days do not count', () => {
  const days = steady(60, 70, 55)
  const found = findRateChange(days, noonOf(67))
  expect(findRateChange([dayOf(-1, 0, 9_000), ...days, dayOf(67, 9_000, 9_000)], noonOf(67))).toEqual(found)
  expect(findRateChange(steady(21, 70, 55), noonOf(28))).not.toBeNull()
  expect(findRateChange(steady(20, 70, 55), noonOf(27))).toBeNull()
  expect(findRateChange(days.slice(0, 60), noonOf(67))).toBeNull()
  expect(findRateChange([...days.slice(0, 60), dayOf(66, 0, 49)], noonOf(67))).toBeNull()
  expect(findRateChange([], noonOf(67))).toBeNull()
})

type History = { perDay: number; days: number; drift?: number; week?: number; fall?: number }

/** On which days after the 67th a rate is told of, at most once in 7 days. It falls on the 67th. */
function tellOf(number: number, { perDay, days, drift = 0, week = 0, fall = 0 }: History): number[] {
  const random = createRandom(number)
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  const [drawn, told]: [DayCounts[], number[]] = [[], []]
  const correlation = 0.9
  let offset = normal() * drift
  for (let day = 0; day < 67 + days; day += 1) {
    const rate = 0.7 + offset + week * Math.sin((2 * Math.PI * day) / 7) - (day >= 67 ? fall : 0)
    const positive = Array.from({ length: perDay }, random).filter((one) => one < rate).length
    drawn.push(dayOf(day, positive, perDay))
    offset = correlation * offset + Math.sqrt(1 - correlation ** 2) * normal() * drift
    const isSilent = day < 67 || day - 67 - (told.at(-1) ?? -7) < 7
    if (!isSilent && findRateChange(drawn.slice(-70), noonOf(day + 1))) told.push(day - 67)
  }
  return told
}

const runs = inFullRun(100, 30)
const repeat = (history: History) => Array.from({ length: runs }, (_, index) => tellOf(index + 1, history))

test.each([
  ['independent signals', { perDay: 100 }, 0.1],
  ['10 signals a day', { perDay: 10 }, 0.1],
  ['a weekly cycle of 5 points', { perDay: 100, week: 0.05 }, 0.1],
  ['a drift of 2 points', { perDay: 100, drift: 0.02 }, 0.25],
])('with %s, there are few false alarms a year', (_, history, most) => {
  expect(repeat({ ...history, days: 365 }).flat().length / runs).toBeLessThanOrEqual(most)
})

test('a fall of 10 points with 100 signals a day is found in 90 %, half of them within 6 days', () => {
  const first = repeat({ perDay: 100, days: 30, fall: 0.1 }).flatMap(([day]) => day ?? [])
  expect(first.length / runs).toBeGreaterThanOrEqual(0.9)
  expect(first.toSorted((a, b) => a - b)[Math.floor(first.length / 2)]).toBeLessThan(6)
})
