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

export function monthOf(instant: Date): Month {
  const [year, number] = [instant.getUTCFullYear(), instant.getUTCMonth()]
  const [start, end] = [Date.UTC(year, number) / 1000, Date.UTC(year, number + 1) / 1000]
  return {
    name: instant.toISOString().slice(0, 7),
    resetsAt: new Date(end * 1000).toISOString(),
    resetsAtSeconds: end,
    lengthSeconds: end - start,
    secondsLeft: end - Math.floor(instant.getTime() / 1000),
  }
}
