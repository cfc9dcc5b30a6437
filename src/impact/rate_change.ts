// Finds a rate that changed although nothing in git did: a model behind the prompt may be another one, or something is broken.
import { dayMs } from '../lib/times.ts'
import type { DayCounts } from './attribute.ts'
import { differenceOfWindows, windowOf } from './compare.ts'
import { type Estimate, rateOf } from './rate.ts'
import { estimateWander } from './wander.ts'

/** The last complete days, UTC, are compared with those before: fewer would not tell how much the rate wanders. */
export const recentDays = 7
const [mostDaysBefore, fewestDaysBefore] = [60, 21]
/** Each prompt is compared every day, so an interval is wrong in fewer comparisons than that of a verdict. */
const error = 1 / 500

/** The rates of the days before and of the last days, from the first of these to the last. */
export type RateChange = { from: string; until: string; before: Estimate; after: Estimate; difference: Estimate }

/** Compares the last complete days of a live change with its days before. Null unless its rate certainly changed. */
export function findRateChange(days: DayCounts[], now: Date): RateChange | null {
  const dateBefore = (number: number) => new Date(now.getTime() - number * dayMs).toISOString().slice(0, 10)
  const [from, until] = [dateBefore(recentDays), dateBefore(1)]
  const earliest = dateBefore(recentDays + mostDaysBefore)
  const earlier = days.filter(({ date }) => date >= earliest && date < from)
  const recent = days.filter(({ date }) => date >= from && date <= until)
  const [base, head] = [windowOf(earlier), windowOf(recent)]
  const [before, after] = [rateOf(base), rateOf(head)]
  if (earlier.length < fewestDaysBefore || !before || !after) return null
  const difference = differenceOfWindows(base, head, estimateWander([earlier, recent]), error)
  return difference.low > 0 || difference.high < 0 ? { from, until, before, after, difference } : null
}
