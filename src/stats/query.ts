import { invalid } from '../errors.ts'
import { invalidQuery } from '../lib/params.ts'
import { nextStart, startBefore, startsBetween } from './intervals.ts'
import { type Interval, statsParams } from './schema.ts'

export type StatsQuery = ReturnType<typeof parseStatsQuery>

const maxPoints = 1_000

/** The number of intervals without a `since`. */
const defaultPoints: Record<Interval, number> = { hour: 24, day: 30, week: 12, month: 12 }

/** No signal is older, and the rules of time zones before 1970 are unreliable. */
const earliest = Date.UTC(1970, 0, 2)

/**
 * Parses a query. Without `until` the range ends with the current interval. The first of the `starts` of its intervals may
 * be before `since`.
 */
export function parseStatsQuery(given: URLSearchParams, now: Date) {
  const { interval, tz: zone, by, ...range } = statsParams.parse(given)
  const until = range.until ?? nextStart(interval, zone, now)
  const since = range.since ?? startBefore(interval, zone, until, defaultPoints[interval])
  if (since >= until) throw invalidQuery({ path: 'since', message: 'must be before until' })
  if (since.getTime() < earliest) throw invalidQuery({ path: 'since', message: 'must be after 1 January 1970' })
  const starts = startsBetween(interval, zone, since, until, maxPoints + 1)
  if (starts.length > maxPoints) throw tooManyPoints(interval)
  return { interval, zone, since, until, starts, by }
}

const tooManyPoints = (interval: Interval) =>
  invalid(`There are more than ${maxPoints} points. Ask for a shorter range, or a longer interval.`, [
    { path: 'interval', message: `must be longer than ${interval} for this range, which has more than ${maxPoints}` },
  ])
