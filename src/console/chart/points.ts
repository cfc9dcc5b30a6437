import { rateOf } from '../../impact/rate.ts'

/** The signals of one interval of time. */
export type Point = { start: string; positive: number; negative: number }

/** The usual seconds of an interval, for one that stands alone. */
const secondsOf = { hour: 3_600, day: 86_400, week: 604_800, month: 2_592_000 }

export type Interval = keyof typeof secondsOf

export type Columns = ReturnType<typeof toColumns>

/**
 * Columns as the plot wants them: times in seconds, counts to both sides of zero, and the rate with its band. Each interval
 * stands at its middle, so that a change within it is on the right side of it.
 */
export function toColumns(points: Point[], interval: Interval) {
  const starts = points.map(({ start }) => new Date(start).getTime() / 1_000)
  const lastWidth = starts.length > 1 ? (starts.at(-1) as number) - (starts.at(-2) as number) : secondsOf[interval]
  const rates = points.map(rateOf)
  return {
    from: starts[0] as number,
    until: (starts.at(-1) as number) + lastWidth,
    x: starts.map((start, index) => (start + (starts[index + 1] ?? start + lastWidth)) / 2),
    positive: points.map(({ positive }) => positive || null),
    negative: points.map(({ negative }) => -negative || null),
    low: rates.map((one) => one?.low ?? null),
    high: rates.map((one) => one?.high ?? null),
    rate: rates.map((one) => one?.value ?? null),
  }
}
