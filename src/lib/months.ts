/** A calendar month in UTC, at one second of it. */
export type Month = ReturnType<typeof describeMonth>

/** Stands for months that are over: they have no room for a signal. */
export const closedMonth: Month = {
  name: 'closed',
  date: '-infinity',
  resetsAt: '',
  resetsAtSeconds: 0,
  lengthSeconds: 0,
  secondsLeft: 0,
}

let lastSecond = Number.NaN
let lastMonth: Month

/** Memoised per second, because every signal asks. */
export function monthOf(instant: Date): Month {
  const second = Math.floor(instant.getTime() / 1000)
  if (second !== lastSecond) [lastSecond, lastMonth] = [second, describeMonth(instant, second)]
  return lastMonth
}

function describeMonth(instant: Date, second: number) {
  const [year, number] = [instant.getUTCFullYear(), instant.getUTCMonth()]
  const [start, end] = [Date.UTC(year, number) / 1000, Date.UTC(year, number + 1) / 1000]
  const name = instant.toISOString().slice(0, 7)
  return {
    name,
    /** The first day, as Postgres reads it. */
    date: `${name}-01`,
    resetsAt: new Date(end * 1000).toISOString(),
    resetsAtSeconds: end,
    lengthSeconds: end - start,
    secondsLeft: end - second,
  }
}
