import {
  addCounts,
  type Counts,
  differenceOf,
  divideCounts,
  type Estimate,
  jointExcess,
  observedDifference,
  scale,
  separateExcess,
  totalOf,
} from './rate.ts'
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
  const grow = (more: number): [Counts, Counts] => {
    const share = signals / (signals + more)
    return [of === 'both' ? divideCounts(base, share) : base, divideCounts(head, share)]
  }
  /** How far the joint and the separate sequence are from ruling a difference out with more signals. */
  const excessesAt = (difference: number): [Excess, Excess] => [
    (more) => jointExcess(...grow(more), difference),
    (more) => separateExcess(...grow(more), difference, difference < observed ? -1 : 1),
  ]
  // Ends are rounded outwards, so one just beyond 0 becomes 0: the smallest shown difference must be ruled out, too.
  const atZero = excessesAt(Math.sign(observed) / scale)
  const atMargins = Math.abs(observed) < margin ? [excessesAt(-margin), excessesAt(margin)] : []
  const decides = (more: number) => {
    const isRuledOut = (excesses: Excess[]) => excesses.some((excess) => excess(more) >= 0)
    return isRuledOut(atZero) || (atMargins.length > 0 && atMargins.every(isRuledOut))
  }
  // The first number that decides is one at which a sequence begins to rule out a difference.
  const candidates = [atZero, ...atMargins].flatMap(([joint, separate]) => [
    findJointStart(joint),
    findSeparateStart(separate),
  ])
  const enough = candidates
    .filter((more) => more !== null && decides(more))
    .toSorted((a, b) => Number(a) - Number(b))[0]
  if (!enough) return null
  const unit = 10 ** Math.max(Math.floor(Math.log10(enough)) - 1, 0)
  const rounded = Math.ceil(enough / unit) * unit
  // The joint sequence may stop ruling a difference out as the number grows.
  return decides(rounded) ? rounded : enough
}

type Excess = (more: number) => number

/** Finds where the separate sequence begins to rule out a difference. Its excess only grows. */
const findSeparateStart = (excess: Excess): number | null => (excess(farthest) < 0 ? null : bisect(excess, 0, farthest))

/**
 * Finds where the joint sequence begins to rule out a difference. As one side outgrows the other, its excess may fall, rise
 * and fall again, so a peak may lie between two powers of two. Around it the excess is concave in the number's logarithm.
 */
function findJointStart(excess: Excess): number | null {
  let [before, last] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (let more = 1; more <= farthest; more *= 2) {
    const now = excess(more)
    if (now >= 0) return bisect(excess, more / 2, more)
    const isPeak = before < last && now <= last
    if (isPeak && last + Math.max(last - before, last - now) >= 0) {
      const peak = findPeak(excess, more / 4, more)
      if (excess(peak) >= 0) return bisect(excess, more / 4, peak)
    }
    before = last
    last = now
  }
  return null
}

/** The smallest number above `tooFew`, at most `enough`, at which the excess reaches 0. */
function bisect(excess: Excess, tooFew: number, enough: number): number {
  let [low, high] = [Math.floor(tooFew), enough]
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (excess(middle) >= 0) high = middle
    else low = middle
  }
  return high
}

/** Finds a peak between two numbers by ternary search. */
function findPeak(excess: Excess, from: number, to: number): number {
  let [low, high] = [Math.floor(from), to]
  while (high - low > 2) {
    const third = Math.floor((high - low) / 3)
    if (excess(low + third) < excess(high - third)) low += third
    else high -= third
  }
  return Math.floor((low + high) / 2)
}
