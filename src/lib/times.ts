let second = Number.NaN
let upToSecond = ''

/** As `toISOString`, several times as fast for instants of the same second. */
export function isoTime(instant: Date): string {
  const time = instant.getTime()
  const milliseconds = ((time % 1000) + 1000) % 1000
  if (time - milliseconds !== second) {
    second = time - milliseconds
    upToSecond = instant.toISOString().slice(0, -4)
  }
  return `${upToSecond}${milliseconds < 10 ? '00' : milliseconds < 100 ? '0' : ''}${milliseconds}Z`
}

const shape = /^(\d{4})-(\d{2})-(\d{2})T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/

/** The instant if it can be kept: Postgres knows no year 0, and from the year 10000 on they are written differently. */
export function keepable(instant: Date): Date | undefined {
  const year = instant.getUTCFullYear()
  return year >= 1 && year <= 9999 ? instant : undefined
}

/** An ISO 8601 instant with its zone, or undefined for anything else, 30 February included. */
export function parseInstant(text: string): Date | undefined {
  const parts = shape.exec(text)
  if (!parts) return undefined
  const [year, month, day] = parts.slice(1, 4).map(Number) as [number, number, number]
  const daysInMonth = new Date(Date.UTC(year, month, 0)).getUTCDate()
  return day > daysInMonth ? undefined : keepable(new Date(text))
}
