/** A calendar month in UTC, as one instant in it sees it. */
export type Month = {
  /** `2026-11` */
  name: string
  resetsAt: Date
  lengthSeconds: number
  secondsLeft: number
}

type Span = { name: string; start: number; end: number }

/** The last one asked for, which is nearly always the next one as well. */
let span: Span = { name: '', start: 0, end: 0 }

export function monthOf(instant: Date): Month {
  const time = instant.getTime()
  if (time < span.start || time >= span.end) span = spanOf(instant)
  const { name, start, end } = span
  return {
    name,
    resetsAt: new Date(end),
    lengthSeconds: (end - start) / 1000,
    secondsLeft: Math.ceil((end - time) / 1000),
  }
}

function spanOf(instant: Date): Span {
  const [year, month] = [instant.getUTCFullYear(), instant.getUTCMonth()]
  return { name: instant.toISOString().slice(0, 7), start: Date.UTC(year, month), end: Date.UTC(year, month + 1) }
}
