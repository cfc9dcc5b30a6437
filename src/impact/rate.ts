// The console imports this file in the browser, so it imports nothing.

/** The signals of one side. Effective counts need not be whole numbers. */
export type Counts = { positive: number; negative: number }

/** A value and its interval. */
export type Estimate = { value: number; low: number; high: number }

/** Rates and differences have six digits after the point. */
export const scale = 1e6

/** The quantile of the normal distribution that leaves 2.5 % above it. */
const z = 1.959963984540054

export const totalOf = ({ positive, negative }: Counts): number => positive + negative

export function addCounts(all: Counts[]): Counts {
  const sum = { positive: 0, negative: 0 }
  for (const { positive, negative } of all) {
    sum.positive += positive
    sum.negative += negative
  }
  return sum
}

export const divideCounts = ({ positive, negative }: Counts, by: number): Counts => ({
  positive: positive / by,
  negative: negative / by,
})

/** The share of positive signals, rounded to a part of `parts`; null without signals. */
export function shareOf(counts: Counts, parts: number): number | null {
  const total = totalOf(counts)
  return total === 0 ? null : Math.round((counts.positive / total) * parts) / parts
}

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
