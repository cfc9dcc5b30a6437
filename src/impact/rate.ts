// Rates, their differences, and the intervals of both. The console imports this file in the browser.
import { type Counts, shareOf, totalOf } from '../lib/counts.ts'

/** A value and its interval. */
export type Estimate = { value: number; low: number; high: number }

/** Rates and differences have six digits after the point. */
export const scale = 1e6

/** The quantile of the normal distribution that leaves 2.5 % above it. */
const z = 1.959963984540054

/** The share of positive signals with its 95 % Wilson interval (1927); null without signals. */
export function rateOf(counts: Counts): Estimate | null {
  const { positive, negative } = counts
  const [total, value] = [totalOf(counts), shareOf(counts, scale)]
  if (value === null) return null
  const weight = total + z * z
  const centre = positive + (z * z) / 2
  const spread = z * Math.sqrt((positive * negative) / total + (z * z) / 4)
  const rounded = (share: number) => Math.round(Math.min(Math.max(share, 0), 1) * scale) / scale
  return { value, low: rounded((centre - spread) / weight), high: rounded((centre + spread) / weight) }
}

/** With too few signals, any difference is possible. */
export const unknownDifference = (value: number): Estimate => ({
  value: Math.round(value * scale) / scale,
  low: -1,
  high: 1,
})

export const isUnknown = ({ low, high }: Estimate): boolean => low === -1 && high === 1

/** How large the mixture expects differences to be. The interval is shortest for differences of about this size. */
const expectedDifference = 0.1

/**
 * A difference d with variance s², and an interval that stays valid however often one looks, wrong in at most a share
 * `error` of comparisons (a normal mixture; Robbins, 1970):
 *
 *   d ± s · √((1 + s²/τ²) (ln(1 + τ²/s²) + 2 ln(1/error)))
 */
export function estimateDifference(value: number, variance: number, error: number): Estimate {
  const ratio = variance / expectedDifference ** 2
  const reach = Math.sqrt(variance * (1 + ratio) * (Math.log1p(1 / ratio) - 2 * Math.log(error)))
  // Rounds outwards, so that the interval shown contains the exact one.
  const low = Math.max(Math.floor((value - reach) * scale) / scale, -1)
  const high = Math.min(Math.ceil((value + reach) * scale) / scale, 1)
  return { value: Math.round(value * scale) / scale, low, high }
}
