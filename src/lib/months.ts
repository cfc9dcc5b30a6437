/** A calendar month in UTC, as one second of it sees it. */
export type Month = {
  /** `2026-11` */
  name: string
  /** ISO 8601: the first instant of the next one. */
  resetsAt: string
  /** The same in seconds since 1970. */
  resetsAtSeconds: number
  lengthSeconds: number
  secondsLeft: number
}

/** The last one asked for, which is nearly always the next one as well. */
let month: Month
let second = Number.NaN

export function monthOf(instant: Date): Month {
  const asked = Math.floor(instant.getTime() / 1000)
  if (asked !== second) {
    second = asked
    month = describe(instant, asked)
  }
  return month
}

function describe(instant: Date, now: number): Month {
  const [year, number] = [instant.getUTCFullYear(), instant.getUTCMonth()]
  const [start, end] = [Date.UTC(year, number) / 1000, Date.UTC(year, number + 1) / 1000]
  return {
    name: instant.toISOString().slice(0, 7),
    resetsAt: new Date(end * 1000).toISOString(),
    resetsAtSeconds: end,
    lengthSeconds: end - start,
    secondsLeft: end - now,
  }
}
