/** A calendar month in UTC, as one instant in it sees it. */
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

type Span = { name: string; start: number; end: number; resetsAt: string }

/** The last one asked for, which is nearly always the next one as well. */
let span: Span = { name: '', start: 0, end: 0, resetsAt: '' }

export function monthOf(instant: Date): Month {
  const time = instant.getTime()
  if (time < span.start || time >= span.end) span = spanOf(instant)
  const { name, start, end, resetsAt } = span
  return {
    name,
    resetsAt,
    resetsAtSeconds: end / 1000,
    lengthSeconds: (end - start) / 1000,
    secondsLeft: Math.ceil((end - time) / 1000),
  }
}

function spanOf(instant: Date): Span {
  const [year, month] = [instant.getUTCFullYear(), instant.getUTCMonth()]
  const end = Date.UTC(year, month + 1)
  const name = instant.toISOString().slice(0, 7)
  return { name, start: Date.UTC(year, month), end, resetsAt: new Date(end).toISOString() }
}
