// Time as the clocks of a zone show it. "Local" is what they show, in milliseconds as if it were UTC.

type Zone = { format: Intl.DateTimeFormat; offsets: Map<number, number> }

const zones = new Map<string, Zone>()
/** Offsets are asked for at the same quarters of an hour again and again, and each costs about 8 µs to find. */
const [keptAtMs, maxKept] = [900_000, 20_000]
let numberKept = 0

/** Names of zones as the IANA database has them. Offsets such as +05:30 are left out: not every runtime knows them. */
const zoneName = /^[A-Za-z][A-Za-z0-9_+-]{0,31}(\/[A-Za-z0-9_+-]{1,32}){0,2}$/

export function isZone(name: string): boolean {
  if (!zoneName.test(name)) return false
  try {
    zoneOf(name)
    return true
  } catch {
    return false
  }
}

/** There are some hundred zones, however their names are written. */
function zoneOf(written: string): Zone {
  const name = written.toLowerCase()
  let zone = zones.get(name)
  if (!zone) {
    const format = new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
    zone = { format, offsets: new Map() }
    zones.set(name, zone)
  }
  return zone
}

/** What the clocks of a zone show at an instant. */
export const localOf = (zone: string, instant: number): number => instant + offsetOf(zone, instant)

/** How far the clocks of a zone are ahead of UTC at an instant. */
export function offsetOf(name: string, instant: number): number {
  const zone = zoneOf(name)
  const kept = zone.offsets.get(instant)
  if (kept !== undefined) return kept
  const offset = readOffset(zone.format, instant)
  if (instant % keptAtMs === 0) keepOffset(zone, instant, offset)
  return offset
}

function keepOffset({ offsets }: Zone, instant: number, offset: number): void {
  if (numberKept >= maxKept) {
    for (const zone of zones.values()) zone.offsets.clear()
    numberKept = 0
  }
  offsets.set(instant, offset)
  numberKept += 1
}

function readOffset(format: Intl.DateTimeFormat, instant: number): number {
  const seconds = Math.floor(instant / 1_000)
  const shown: Record<string, number> = {}
  for (const { type, value } of format.formatToParts(seconds * 1_000)) shown[type] = Number(value)
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = shown
  return Date.UTC(year, month - 1, day, hour, minute, second) - seconds * 1_000
}

const dayMs = 86_400_000

/**
 * The first instant at which the clocks show this local time or a later one. Where they are set back that is the first
 * time that they show it, and where they skip it the moment at which they are set forward.
 */
export function firstInstantOf(zone: string, local: number): number {
  const offsets = [offsetOf(zone, local - dayMs), offsetOf(zone, local + dayMs)]
  const [earliest, latest] = [local - Math.max(...offsets), local - Math.min(...offsets)]
  if (earliest === latest || localOf(zone, earliest) === local) return earliest
  return bisect(earliest, latest, (instant) => localOf(zone, instant) >= local)
}

/** The moment at which the offset changes, between two instants at which it differs. */
export function findOffsetChange(zone: string, from: number, to: number): number {
  const offset = offsetOf(zone, from)
  return bisect(from, to, (instant) => offsetOf(zone, instant) !== offset)
}

/** The first instant at which something holds that does not hold at `low`, and holds at `high`. */
function bisect(low: number, high: number, holds: (instant: number) => boolean): number {
  let [before, after] = [low, high]
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2)
    if (holds(middle)) after = middle
    else before = middle
  }
  return after
}
