// The ranges of time that a chart can show, and how it asks for them.
import type { Interval } from '../chart/points.ts'
import { locale } from '../parts/format.ts'

export type Range = { since: Date; until: Date | null; interval: Interval }

const dayMs = 86_400_000

/** Each with the intervals that fit it, the usual one first. */
export const ranges: Record<string, { name: string; words: string; days: number; intervals: Interval[] }> = {
  '7d': { name: '7 d', words: '7 days', days: 7, intervals: ['day', 'hour'] },
  '30d': { name: '30 d', words: '30 days', days: 30, intervals: ['day', 'hour', 'week'] },
  '90d': { name: '90 d', words: '90 days', days: 90, intervals: ['day', 'week'] },
  '1y': { name: '1 y', words: '1 year', days: 365, intervals: ['week', 'day', 'month'] },
  all: { name: 'all', words: 'any time', days: 15 * 365, intervals: ['week', 'month'] },
}

const usualRange = '30d'

/** The range that the query of the page names, the usual one unless it makes sense. */
export function readRange(query: URLSearchParams, now: Date): Range & { name: string; intervals: Interval[] } {
  const [from, to] = [new Date(query.get('since') ?? ''), new Date(query.get('until') ?? '')]
  if (from < to) {
    const days = (to.getTime() - from.getTime()) / dayMs
    const intervals: Interval[] =
      days <= 3 ? ['hour'] : days <= 40 ? ['day', 'hour'] : days <= 400 ? ['day', 'week'] : ['week']
    const interval = chosen(query, intervals)
    const [since, until] = interval === 'hour' ? [from, to] : [startOfDay(from), startOfDay(to, 1)]
    return { name: '', since, until, interval, intervals }
  }
  const name = Object.hasOwn(ranges, query.get('range') ?? '') ? (query.get('range') as string) : usualRange
  const { days, intervals } = ranges[name] as (typeof ranges)[string]
  const since = startOfDay(now, 1 - days)
  return { name, since, until: null, interval: chosen(query, intervals), intervals }
}

function chosen(query: URLSearchParams, intervals: Interval[]): Interval {
  const by = query.get('by') as Interval
  return intervals.includes(by) ? by : (intervals[0] as Interval)
}

/** By the clock of the reader, whose days are shown, and have 23 to 25 hours. */
const startOfDay = (time: Date, daysLater = 0): Date =>
  new Date(time.getFullYear(), time.getMonth(), time.getDate() + daysLater)

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone

/** The zone of the reader. Chromium calls one that it cannot find out by this name, and counts in UTC. */
export const timeZone = zone === 'Etc/Unknown' ? 'UTC' : zone

const formats: Record<Interval, Intl.DateTimeFormat> = {
  hour: new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' }),
  day: new Intl.DateTimeFormat(locale, { weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' }),
  week: new Intl.DateTimeFormat(locale, { dateStyle: 'medium' }),
  month: new Intl.DateTimeFormat(locale, { month: 'long', year: 'numeric' }),
}

/** An interval by its beginning. */
export const nameOfInterval = (start: string, interval: Interval): string =>
  `${interval === 'week' ? 'Week of ' : ''}${formats[interval].format(new Date(start))}`
