/** A calendar month in UTC, as seen from one second of it. */
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

/** The month as seen from the second that was asked for last. */
let lastSecond = Number.NaN
let lastMonth: Month

/**
 * Describes every second once: for each signal anew, with caches that always keep their order, a refused one took 23.8
 * µs instead of 21.5.
 */
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
