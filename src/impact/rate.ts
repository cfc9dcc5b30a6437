// The console computes rates by this file, too, in the browser: it imports nothing.

/** The signals of one side. They need not be whole numbers: a forecast goes on with the rates of what was counted. */
export type Counts = { positive: number; negative: number }

/** A value with the interval that it is known within. */
export type Estimate = { value: number; low: number; high: number }

/** Rates and differences are shown with six digits after the point. */
export const scale = 1e6

/** The quantile of the normal distribution that leaves 2.5 % above it. */
const z = 1.959963984540054

export const totalOf = ({ positive, negative }: Counts): number => positive + negative

/** The share of positive signals with its 95 % interval after Wilson (1927); null without signals. */
export function rateOf(counts: Counts): Estimate | null {
  const { positive, negative } = counts
  const total = totalOf(counts)
  if (total === 0) return null
  const weight = total + z * z
  const centre = positive + (z * z) / 2
  const spread = z * Math.sqrt((positive * negative) / total + (z * z) / 4)
  const rounded = (share: number) => Math.round(Math.min(Math.max(share, 0), 1) * scale) / scale
  return {
    value: rounded(positive / total),
    low: rounded((centre - spread) / weight),
    high: rounded((centre + spread) / weight),
  }
}
