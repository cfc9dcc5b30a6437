import { addCounts, type Counts, scale, totalOf } from './rate.ts'

/** Days with fewer signals tell too little. */
const fewestSignals = 5
const highestCorrelation = 0.8

/**
 * How many signals count as one, because those of a day, and of days in a row, are not independent. `windows` are the days
 * of each change, in order.
 */
export function designEffectOf(windows: Counts[][]): number {
  const residuals = windows.map(standardisedResiduals)
  const days = residuals.flat().length
  const freedom = days - residuals.filter((own) => own.length > 0).length
  const chiSquared = sumOf(residuals.flat().map((one) => one * one))
  if (freedom <= 0 || chiSquared <= freedom) return 1
  const products = residuals.flatMap((own) => own.slice(1).map((one, index) => one * (own[index] as number)))
  const biased = sumOf(products) / chiSquared
  const correlation = Math.min(Math.max(biased + (1 + 3 * biased) / days, 0), highestCorrelation)
  const effect = 1 + ((chiSquared / freedom - 1) * (1 + correlation)) / (1 - correlation)
  // Rounded before use, so that the effect shown gives the interval shown.
  return Math.round(effect * scale) / scale
}

/** How far the positive signals of each day are from the rate of all days, in standard deviations. */
function standardisedResiduals(all: Counts[]): number[] {
  const days = all.filter((day) => totalOf(day) >= fewestSignals)
  const sum = addCounts(days)
  const rate = sum.positive / totalOf(sum)
  return days.map((day) => {
    const total = totalOf(day)
    const deviation = Math.sqrt(total * rate * (1 - rate))
    return deviation === 0 ? 0 : (day.positive - total * rate) / deviation
  })
}

const sumOf = (numbers: number[]): number => numbers.reduce((sum, number) => sum + number, 0)
