import { addCounts, type Counts, divideCounts, totalOf } from '../lib/counts.ts'
import { differenceOf, type Estimate, isRuledOut, observedDifference, rateOf, scale } from './rate.ts'
import type { Impact } from './schema.ts'

// The thresholds of verdicts. The margin is a parameter (schema.ts), the error rate of intervals is in rate.ts.

/** Days with fewer signals tell too little of how the rate varies. */
const fewestSignals = 5
const highestCorrelation = 0.8
/** A forecast beyond a million signals would tell nothing. */
const farthest = 2 ** 20
/** A note names a side without signals on at least this many last days of the other. */
const fewestMissedDays = 2

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

/** The signals of both sides on one day, UTC. */
export type DayPair = { date: string; base: Counts; head: Counts }

/** Compares two versions by the days on which both have signals. The days are in order. */
export function compareSides(days: DayPair[], margin: number) {
  const common = days.filter(isCommon)
  const blocked = blockByDay(common)
  const describe = (side: 'base' | 'head') => {
    const sum = addCounts(days.map((day) => day[side]))
    const compared = totalOf(addCounts(common.map((day) => day[side])))
    return { signals: { ...sum, total: totalOf(sum), compared }, rate: rateOf(blocked[side]) }
  }
  const [base, head] = [describe('base'), describe('head')]
  const signals = base.signals.compared + head.signals.compared
  const { difference, verdict, signalsNeeded } = compare(blocked.base, blocked.head, margin, { of: 'both', signals })
  return {
    base,
    head,
    difference,
    verdict,
    signals_needed: signalsNeeded,
    reason: reasonFor(days, common),
    notes: notesFor(days),
    overlap: { days: common.length, from: common[0]?.date ?? null, until: common.at(-1)?.date ?? null },
    share: signals === 0 ? null : Math.round((head.signals.compared / signals) * scale) / scale,
    days,
  }
}

/** Why there is no comparison; null if there is one. */
function reasonFor(days: DayPair[], common: DayPair[]): string | null {
  if (common.length > 0) return null
  const missing = (['base', 'head'] as const).filter((side) => days.every((day) => totalOf(day[side]) === 0))
  if (missing.length === 2) return 'Neither commit has signals.'
  return missing.length === 1 ? `The ${missing[0]} has no signals.` : 'There is no day with signals of both.'
}

function notesFor(days: DayPair[]): string[] {
  return (['base', 'head'] as const).flatMap((side) => {
    const last = days.findLastIndex((day) => totalOf(day[side]) > 0)
    const missed = days.length - 1 - last
    if (last < 0 || missed < fewestMissedDays) return []
    const other = side === 'base' ? 'head' : 'base'
    return `The ${side} has no signals after ${days[last]?.date}: ${missed} later days of the ${other} do not count.`
  })
}

const isCommon = ({ base, head }: DayPair): boolean => totalOf(base) > 0 && totalOf(head) > 0

/**
 * The effective counts of two sides that ran at the same time. Each day with signals of both is a block. Its weight
 * w = n₁n₂/(n₁+n₂) is the same for both sides, so neither a rate that drifts nor a share that changes from day to day is
 * taken for a difference. Each side counts as (Σw)²/Σ(w²/n) signals at its weighted mean rate: as many signals of equal
 * weight would be as precise. With a constant share these are its signals.
 */
export function blockByDay(days: DayPair[]): { base: Counts; head: Counts } {
  const common = days.filter(isCommon).map(({ base, head }) => {
    const [ofBase, ofHead] = [totalOf(base), totalOf(head)]
    return { base, head, weight: (ofBase * ofHead) / (ofBase + ofHead) }
  })
  const countsOf = (side: 'base' | 'head'): Counts => {
    let [sum, spread] = [0, 0]
    const weighted = common.map((day) => {
      const factor = day.weight / totalOf(day[side])
      sum += day.weight
      spread += day.weight * factor
      return { positive: day[side].positive * factor, negative: day[side].negative * factor }
    })
    return common.length === 0 ? addCounts([]) : divideCounts(addCounts(weighted), spread / sum)
  }
  return { base: countsOf('base'), head: countsOf('head') }
}
