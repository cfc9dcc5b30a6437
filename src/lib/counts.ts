// The console imports this file in the browser, so it imports nothing.

/** The signals of one side. In a forecast they need not be whole numbers. */
export type Counts = { positive: number; negative: number }

export const totalOf = ({ positive, negative }: Counts): number => positive + negative

export function addCounts(all: Counts[]): Counts {
  const sum = { positive: 0, negative: 0 }
  for (const { positive, negative } of all) {
    sum.positive += positive
    sum.negative += negative
  }
  return sum
}

/** The share of positive signals, rounded to a part of `parts`; null without signals. */
export function shareOf(counts: Counts, parts: number): number | null {
  const total = totalOf(counts)
  return total === 0 ? null : Math.round((counts.positive / total) * parts) / parts
}
