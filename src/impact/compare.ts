import { designEffectOf } from './dispersion.ts'
import { forecast, type Growth } from './forecast.ts'
import { differenceOf, isRuledOut, observedDifference } from './interval.ts'
import { addCounts, type Counts, divideCounts, type Estimate, totalOf } from './rate.ts'
import type { Impact } from './schema.ts'

type Comparison = {
  /** The head's rate less the base's; null while a side has no signals. */
  difference: Estimate | null
  verdict: NonNullable<Impact['verdict']>
  /** How many more signals would decide it, at the rates so far; null if decided or out of reach. */
  signalsNeeded: number | null
}

/** Compares the signals before a change with those after it, given by day. */
export function compareWindows(before: Counts[], after: Counts[], margin: number) {
  const { designEffect, base, head } = effectiveCounts(before, after)
  const signals = totalOf(addCounts(after))
  return { designEffect, ...compare(base, head, margin, { of: 'head', signals }) }
}

/** Whether the verdict can be other than `undecided`. Takes a fraction of the time that the interval takes. */
export function canBeDecided(before: Counts[], after: Counts[], margin: number): boolean {
  const { base, head } = effectiveCounts(before, after)
  if (totalOf(base) === 0 || totalOf(head) === 0) return false
  const isWithin = Math.abs(observedDifference(base, head)) <= margin
  const excludes = (difference: number) => isRuledOut(base, head, difference)
  return excludes(0) || (isWithin && excludes(-margin) && excludes(margin))
}

/** Divides all counts by the design effect: signals of a day, and of days in a row, are not independent. */
export function effectiveCounts(before: Counts[], after: Counts[]) {
  const designEffect = designEffectOf([before, after])
  const [base, head] = [before, after].map((days) => divideCounts(addCounts(days), designEffect)) as [Counts, Counts]
  return { designEffect, base, head }
}

/**
 * Compares two sides by their effective counts. The verdict is read from the interval, so the two cannot contradict each
 * other.
 */
export function compare(base: Counts, head: Counts, margin: number, growth: Growth): Comparison {
  const difference = differenceOf(base, head)
  const verdict = verdictFor(difference, margin)
  const signalsNeeded = difference && verdict === 'undecided' ? forecast(base, head, margin, growth) : null
  return { difference, verdict, signalsNeeded }
}

/** A difference that certainly lies within the margin is `same`, even if it certainly is not zero. */
export function verdictFor(difference: Estimate | null, margin: number): Comparison['verdict'] {
  if (!difference) return 'undecided'
  const { low, high } = difference
  if (low >= -margin && high <= margin) return 'same'
  if (low > 0) return 'better'
  return high < 0 ? 'worse' : 'undecided'
}
