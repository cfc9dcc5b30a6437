export const [minuteMs, hourMs, dayMs] = [60_000, 3_600_000, 86_400_000]

const shape = /^(\d{4})-(\d{2})-(\d{2})T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/

/** Postgres has no year 0. */
export const earliestInstant = new Date('0001-01-01T00:00:00Z')

/** The last instant that can be stored: ISO 8601 writes the years from 10000 on differently. */
export const lastStorableInstant = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

export const storableOrUndefined = (instant: Date): Date | undefined =>
  instant >= earliestInstant && instant.getTime() <= lastStorableInstant ? instant : undefined

export const earlierOf = (a: Date, b: Date): Date => (a < b ? a : b)

/** Parses an ISO 8601 instant with its zone. Undefined for anything else, 30 February included. */
export function parseInstant(text: string): Date | undefined {
  const parts = shape.exec(text)
  if (!parts) return undefined
  const [year, month, day] = parts.slice(1, 4).map(Number) as [number, number, number]
  const daysInMonth = new Date(Date.UTC(year, month, 0)).getUTCDate()
  return day > daysInMonth ? undefined : storableOrUndefined(new Date(text))
}

export const expectedTime = 'an ISO 8601 time with its zone, such as 2026-11-14T23:35:00Z, or a date'

/** Parses a time of a query: an instant, or a date for its first instant, UTC. */
export function parseTime(text: string): Date | undefined {
  // A plus that was not percent-encoded arrives as a space.
  const time = text.replace(' ', '+')
  return parseInstant(/^\d{4}-\d\d-\d\d$/.test(time) ? `${time}T00:00:00Z` : time)
}
