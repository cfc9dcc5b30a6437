/** Ascending instants, and the days and quarters of an hour, UTC, that have one in them other than at their start. */
export type SplitBounds = { bounds: string[]; days: string[]; quarters: string[] }

/** Rollups hold whole days and quarters: one that a bound splits is read in smaller parts. */
export function splitBounds(bounds: Date[]): SplitBounds {
  const splitUnits = (minutes: number) => {
    const unit = 60_000 * minutes
    const starts = bounds.map((bound) => Math.floor(bound.getTime() / unit) * unit)
    const split = starts.filter((start, index) => start !== bounds[index]?.getTime())
    return [...new Set(split)].map((start) => new Date(start).toISOString())
  }
  return { bounds: bounds.map((bound) => bound.toISOString()), days: splitUnits(1440), quarters: splitUnits(15) }
}
