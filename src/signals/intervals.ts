import { findOffsetChange, firstInstantOf, localOf, offsetOf } from '../lib/zoned_time.ts'

export const intervals = ['hour', 'day', 'week', 'month'] as const
export type Interval = (typeof intervals)[number]

const [hourMs, dayMs] = [3_600_000, 86_400_000]
/** 1 January 1970 was a Thursday, and weeks begin on Monday. */
const firstMonday = 4 * dayMs

/**
 * The starts of all intervals of a zone that have a part from `since` to before `until`, at most so many of them: the
 * first is the start of the interval that `since` is in. A day that the zone has skipped has none.
 */
export function startsBetween(interval: Interval, zone: string, since: Date, until: Date, most: number): Date[] {
  const [from, to] = [since.getTime(), until.getTime()]
  const starts: number[] = []
  for (const start of startsFrom(interval, zone, from)) {
    // Where clocks are set back over midnight, an instant may be after the start of the day that they show later.
    if (start <= from) starts.length = 0
    if (start > from && (start >= to || starts.length === most)) break
    if (start !== starts.at(-1)) starts.push(start)
  }
  return starts.map((start) => new Date(start))
}

/** The start of the interval after the one that an instant is in. */
export function nextStart(interval: Interval, zone: string, instant: Date): Date {
  const at = instant.getTime()
  for (const start of startsFrom(interval, zone, at)) if (start > at) return new Date(start)
  return instant
}

/** The start of the interval that is this many before the one that ends at, or has a part before, an instant. */
export function startBefore(interval: Interval, zone: string, until: Date, intervalsBefore: number): Date {
  if (interval === 'hour') return new Date(until.getTime() - hourMs * intervalsBefore)
  const local = stepBack(interval, floorLocal(interval, localOf(zone, until.getTime() - 1)), intervalsBefore - 1)
  return new Date(firstInstantOf(zone, local))
}

/** Ascending starts, endless, from one that is at or before the instant. */
function startsFrom(interval: Interval, zone: string, instant: number): Generator<number> {
  return interval === 'hour' ? hoursFrom(zone, instant) : datesFrom(interval, zone, instant)
}

function* datesFrom(interval: Interval, zone: string, instant: number): Generator<number> {
  let local = floorLocal(interval, localOf(zone, instant))
  for (;;) {
    yield firstInstantOf(zone, local)
    local = stepBack(interval, local, -1)
  }
}

/** The start of an interval on the calendar, for what clocks show. */
function floorLocal(interval: Interval, local: number): number {
  const shown = new Date(local)
  if (interval === 'month') return Date.UTC(shown.getUTCFullYear(), shown.getUTCMonth())
  const [length, origin] = interval === 'week' ? [7 * dayMs, firstMonday] : [dayMs, 0]
  return Math.floor((local - origin) / length) * length + origin
}

function stepBack(interval: Interval, local: number, times: number): number {
  if (interval !== 'month') return local - times * (interval === 'week' ? 7 : 1) * dayMs
  const shown = new Date(local)
  return Date.UTC(shown.getUTCFullYear(), shown.getUTCMonth() - times)
}

/**
 * Hours begin when the clocks show a full hour, and when they are set to another one. An hour that clocks show twice is
 * two of them.
 */
function* hoursFrom(zone: string, instant: number): Generator<number> {
  let start = firstInstantOf(zone, floorLocal('day', localOf(zone, instant)))
  for (;;) {
    yield start
    start = nextHour(zone, start)
  }
}

function nextHour(zone: string, from: number): number {
  const offset = offsetOf(zone, from)
  const next = from + hourMs - mod(from + offset, hourMs)
  if (offsetOf(zone, next) === offset) return next
  const change = findOffsetChange(zone, from, next)
  if (change === next) return next
  const [before, after] = [change + offset, localOf(zone, change)]
  if (Math.floor(before / hourMs) !== Math.floor(after / hourMs)) return change
  return change + hourMs - mod(after, hourMs)
}

const mod = (value: number, by: number): number => ((value % by) + by) % by
