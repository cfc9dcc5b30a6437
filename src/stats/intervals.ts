import type { Interval } from './schema.ts'

type DateInterval = Exclude<Interval, 'hour'>

/** An instant as the clocks of a zone show it. */
export const inZone = (zone: string, instant: number): Temporal.ZonedDateTime =>
  new Temporal.ZonedDateTime(BigInt(instant) * 1_000_000n, zone)

/**
 * The starts of the intervals of a zone that overlap [since, until), at most `most`. The first interval contains `since`. A
 * day that the zone skipped has no start.
 */
export function startsBetween(interval: Interval, zone: string, since: Date, until: Date, most: number): Date[] {
  const [from, to] = [since.getTime(), until.getTime()]
  const starts: number[] = []
  for (const start of startsFrom(interval, zone, from)) {
    // When clocks are set back over midnight, an instant may come after the start of the day that they show next.
    if (start <= from) starts.length = 0
    if (start > from && (start >= to || starts.length === most)) break
    if (start !== starts.at(-1)) starts.push(start)
  }
  return starts.map((start) => new Date(start))
}

/** The start of the interval after the one that contains an instant. */
export function nextStart(interval: Interval, zone: string, instant: Date): Date {
  const at = instant.getTime()
  for (const start of startsFrom(interval, zone, at)) if (start > at) return new Date(start)
  return instant
}

/** The start of the first of `intervalsBefore` intervals. The last one ends at `until` or contains it. */
export function startBefore(interval: Interval, zone: string, until: Date, intervalsBefore: number): Date {
  if (interval === 'hour') return new Date(until.getTime() - 3_600_000 * intervalsBefore)
  const last = firstDateOf(interval, inZone(zone, until.getTime() - 1))
  return new Date(startOf(addIntervals(last, interval, 1 - intervalsBefore), zone))
}

/** Yields the starts of intervals without end, ascending. The first is at or before the instant. */
function* startsFrom(interval: Interval, zone: string, instant: number): Generator<number> {
  const shown = inZone(zone, instant)
  if (interval === 'hour') return yield* hoursFrom(shown.startOfDay())
  for (let date = firstDateOf(interval, shown); ; date = addIntervals(date, interval, 1)) yield startOf(date, zone)
}

/** The first instant of a date. If clocks skip its midnight, that is when they are set forward. */
const startOf = (date: Temporal.PlainDate, zone: string): number => date.toZonedDateTime(zone).epochMilliseconds

/** The first date of the interval that contains an instant. Weeks begin on Monday. */
function firstDateOf(interval: DateInterval, instant: Temporal.ZonedDateTime): Temporal.PlainDate {
  const date = instant.toPlainDate()
  if (interval === 'month') return date.with({ day: 1 })
  return interval === 'week' ? date.subtract({ days: date.dayOfWeek - 1 }) : date
}

const addIntervals = (date: Temporal.PlainDate, interval: DateInterval, number: number): Temporal.PlainDate =>
  date.add({ [`${interval}s`]: number })

/**
 * Hours begin when the clocks show a full hour, and when they are set to a different hour. An hour that clocks show twice
 * counts as two.
 */
function* hoursFrom(first: Temporal.ZonedDateTime): Generator<number> {
  let hour = first
  // Looking up a transition is slow, so it is done once per transition and not per hour.
  let change = hour.getTimeZoneTransition('next')
  for (;;) {
    yield hour.epochMilliseconds
    hour = fullHourAfter(hour)
    while (change && Temporal.ZonedDateTime.compare(change, hour) < 0) {
      const isSameHour = change.subtract({ seconds: 1 }).hour === change.hour
      hour = isSameHour ? fullHourAfter(change) : change
      change = change.getTimeZoneTransition('next')
    }
    if (change?.equals(hour)) change = hour.getTimeZoneTransition('next')
  }
}

const fullHourAfter = (from: Temporal.ZonedDateTime): Temporal.ZonedDateTime =>
  from.add({ seconds: 3_600 - 60 * from.minute - from.second })
