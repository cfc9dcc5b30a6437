/** A calendar month in UTC, as one instant in it sees it. */
export type Month = {
  /** `2026-11` */
  name: string
  resetsAt: Date
  lengthSeconds: number
  secondsLeft: number
}

export function monthOf(instant: Date): Month {
  const year = instant.getUTCFullYear()
  const month = instant.getUTCMonth()
  const start = Date.UTC(year, month)
  const end = Date.UTC(year, month + 1)
  return {
    name: instant.toISOString().slice(0, 7),
    resetsAt: new Date(end),
    lengthSeconds: (end - start) / 1000,
    secondsLeft: Math.ceil((end - instant.getTime()) / 1000),
  }
}
