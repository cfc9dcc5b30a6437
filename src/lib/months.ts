/** A calendar month in UTC, at one second of it. */
export type Month = {
  /** `2026-11` */
  name: string
  /** The first instant of the next month, in ISO 8601. */
  resetsAt: string
  /** The same in seconds since 1970. */
  resetsAtSeconds: number
  lengthSeconds: number
  secondsLeft: number
}

let lastSecond = Number.NaN
let lastMonth: Month

/** Memoised per second, because every signal asks. */
export function monthOf(instant: Date): Month {
  const second = Math.floor(instant.getTime() / 1000)
  if (second !== lastSecond) [lastSecond, lastMonth] = [second, describeMonth(instant, second)]
  return lastMonth
}

function describeMonth(instant: Date, second: number): Month {
  const [year, number] = [instant.getUTCFullYear(), instant.getUTCMonth()]
  const [start, end] = [Date.UTC(year, number) / 1000, Date.UTC(year, number + 1) / 1000]
  return {
    name: instant.toISOString().slice(0, 7),
    resetsAt: new Date(end * 1000).toISOString(),
    resetsAtSeconds: end,
    lengthSeconds: end - start,
    secondsLeft: end - second,
  }
}
