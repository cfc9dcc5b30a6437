import { addCounts, type Counts, divideCounts, totalOf } from '../lib/counts.ts'
import { differenceOf, type Estimate, isRuledOut, observedDifference, scale } from './rate.ts'
import type { Impact } from './schema.ts'

type Comparison = {
  /** The head's rate less the base's; null while a side has no signals. */
  difference: Estimate | null
  verdict: NonNullable<Impact['verdict']>
  /** How many more signals would decide it, at the rates so far; null if decided or out of reach. */
  signalsNeeded: number | null
}

/** Compares the days of a change with those of the change before it. */
export function compareWindows(baseDays: Counts[], headDays: Counts[], margin: number) {
  const { designEffect, base, head } = effectiveCounts(baseDays, headDays)
  const signals = totalOf(addCounts(headDays))
  return { designEffect, ...compare(base, head, margin, { of: 'head', signals }) }
}

/** Divides all counts by the design effect: signals of a day, and of days in a row, are not independent. */
export function effectiveCounts(baseDays: Counts[], headDays: Counts[]) {
  const designEffect = designEffectOf([baseDays, headDays])
  const [base, head] = [baseDays, headDays].map((days) => divideCounts(addCounts(days), designEffect)) as [
    Counts,
    Counts,
  ]
  return { designEffect, base, head }
}

/** Compares two sides by their effective counts. The verdict follows from the interval, so they cannot contradict. */
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
  // Estimated from few days, the correlation is too low: Kendall's correction.
  const biased = sumOf(products) / chiSquared
  const correlation = Math.min(Math.max(biased + (1 + 3 * biased) / days, 0), highestCorrelation)
  const effect = 1 + ((chiSquared / freedom - 1) * (1 + correlation)) / (1 - correlation)
  // Rounded before use, so that the effect shown gives the interval shown.
  return Math.round(effect * scale) / scale
}

/** How far the positive signals of each day are from the rate of all days, in standard deviations. Leaves out small days. */
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

/** Which sides get more signals, and how many signals these sides have now. */
type Growth = { of: 'head' | 'both'; signals: number }

/** A forecast beyond a million signals would tell nothing. */
const farthest = 2 ** 20

/**
 * The smallest number of further signals that decides, at the rates so far, rounded up to two digits. Null if no number up
 * to a million does: a side that gets no more signals stays uncertain.
 */
function forecast(base: Counts, head: Counts, margin: number, { of, signals }: Growth): number | null {
  const observed = observedDifference(base, head)
  const decides = (more: number): boolean => {
    const share = signals / (signals + more)
    const [grownBase, grownHead] = [of === 'both' ? divideCounts(base, share) : base, divideCounts(head, share)]
    const excludes = (difference: number) => isRuledOut(grownBase, grownHead, difference)
    // Ends are rounded outwards, so one just beyond 0 becomes 0: the smallest shown difference must be ruled out, too.
    if (excludes(Math.sign(observed) / scale)) return true
    return Math.abs(observed) < margin && excludes(-margin) && excludes(margin)
  }
  let [tooFew, enough] = [0, 1]
  while (!decides(enough)) {
    if (enough === farthest) return null
    tooFew = enough
    // The joint sequence may rule a difference out for some numbers between two powers of two only.
    enough = Math.min(Math.ceil(enough * 1.5), farthest)
  }
  while (enough - tooFew > 1) {
    const middle = Math.floor((tooFew + enough) / 2)
    if (decides(middle)) enough = middle
    else tooFew = middle
  }
  const unit = 10 ** Math.max(Math.floor(Math.log10(enough)) - 1, 0)
  const rounded = Math.ceil(enough / unit) * unit
  // The joint sequence may stop ruling a difference out as the number grows.
  return decides(rounded) ? rounded : enough
}
