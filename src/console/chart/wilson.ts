/** The normal quantile of 95 %. */
const z = 1.959963984540054

/** A share with the interval that it lies in, each from 0 to 1. */
export type Share = { value: number; low: number; high: number }

/** The share of the positive with its 95 % Wilson interval; null of nothing. */
export function shareOf(positive: number, total: number): Share | null {
  if (total === 0) return null
  const value = positive / total
  const centre = (value + (z * z) / (2 * total)) / (1 + (z * z) / total)
  const reach = (z / (1 + (z * z) / total)) * Math.sqrt((value * (1 - value)) / total + (z * z) / (4 * total * total))
  return { value, low: Math.max(0, centre - reach), high: Math.min(1, centre + reach) }
}
