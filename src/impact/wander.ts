// How much the rate of a prompt wanders from day to day without changes.
import { addCounts, type Counts, totalOf } from '../lib/counts.ts'

/** Daily rates as a first-order autoregression: their variance, and the correlation of neighbouring days. */
export type Wander = {
  variance: number
  correlation: number
  /** On how many days it was estimated. */
  days: number
}

/** Days with fewer signals tell too little of how the rate wanders. */
const fewestSignals = 5
/** Older days tell little about today. */
export const wanderDays = 90
/** What is assumed before there is a past: 2.5 points. It weighs as much as this many days. */
const prior = { variance: 0.025 ** 2, correlation: 0.9, days: 21 }
const highestCorrelation = 0.98
/** No rate is believed to be stiller than half a point: few signals cannot tell. */
const leastVariance = 0.005 ** 2
/** Each pass corrects for the correlation of the pass before; more than three change nothing. */
const passes = 3

/**
 * Estimates the wander from the days of each change, oldest first. The variance comes from the squared distances of daily
 * rates to the rate of their change, less the variance of chance; the correlation from the products of neighbours, in which
 * chance cancels out. A change's own mean follows its days, and so hides a part of both: the variance of a mean of as many
 * days, which is added again.
 */
export function estimateWander(windows: Counts[][]): Wander {
  let [days, pairs, squares, products] = [0, 0, 0, 0]
  const lengths: number[] = []
  for (const window of lastOf(windows)) {
    const large = window.filter((day) => totalOf(day) >= fewestSignals)
    if (large.length < 2) continue
    const sum = addCounts(large)
    const rate = sum.positive / totalOf(sum)
    const distances = large.map((day) => day.positive / totalOf(day) - rate)
    for (const [index, distance] of distances.entries()) {
      squares += distance ** 2 - (rate * (1 - rate)) / totalOf(large[index] as Counts)
      if (index > 0) products += distance * (distances[index - 1] as number)
    }
    lengths.push(large.length)
    days += large.length
    pairs += large.length - 1
  }
  let { variance, correlation } = prior
  for (let pass = 0; pass < passes; pass += 1) {
    const hidden = lengths.map((length) => varianceOfMean(correlation, length))
    const hiddenOf = (less: number) =>
      hidden.reduce((sum, share, index) => sum + share * ((lengths[index] as number) - less), 0)
    const seen = prior.days * prior.variance + squares
    variance = Math.max(seen / (prior.days + days - hiddenOf(0)), leastVariance)
    const covariance = prior.days * prior.variance * prior.correlation + products + variance * hiddenOf(1)
    correlation = Math.min(Math.max(covariance / (prior.days + pairs) / variance, 0), highestCorrelation)
  }
  return { variance, correlation, days }
}

/** The last days of the windows. Reads no others: a page needs hundreds of estimates. */
function lastOf(windows: Counts[][]): Counts[][] {
  const last: Counts[][] = []
  let left = wanderDays
  for (const window of windows.toReversed()) {
    if (left <= 0) break
    last.unshift(window.slice(-left))
    left -= window.length
  }
  return last
}

/** The standard deviation in points, with two digits. */
export const showWander = ({ variance, days }: Wander): { points: number; days: number } => ({
  points: Math.round(Math.sqrt(variance) * 1e4) / 100,
  days,
})

/** The variance of the mean of adjacent days, where that of a day is 1. */
function varianceOfMean(correlation: number, days: number): number {
  const tail = (2 * correlation * (1 - correlation ** days)) / (1 - correlation) ** 2
  return ((days * (1 + correlation)) / (1 - correlation) - tail) / days ** 2
}

/** By how much the mean rates of two runs of adjacent days differ by themselves, as a variance. */
export function varianceBetween({ variance, correlation }: Wander, before: number, after: number): number {
  const shared = (correlation * (1 - correlation ** before) * (1 - correlation ** after)) / (1 - correlation) ** 2
  const apart = varianceOfMean(correlation, before) + varianceOfMean(correlation, after)
  return variance * (apart - (2 * shared) / (before * after))
}
