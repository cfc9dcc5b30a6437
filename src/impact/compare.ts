import { addCounts, type Counts, totalOf } from '../lib/counts.ts'
import { type Estimate, estimateDifference, rateOf, scale, unknownDifference } from './rate.ts'
import type { Impact } from './schema.ts'
import { type DayPair, isSplitWrong } from './split.ts'
import { varianceBetween, type Wander } from './wander.ts'

// The thresholds of verdicts. The margin is a parameter (schema.ts).

/** Side by side, the interval is wrong in at most one comparison in 20, and needs this many signals of each side. */
const sideBySide = { error: 1 / 20, fewestSignals: 20 }
/** Before and after, the rate also wanders: half of the error, and more signals, and a week, whose days may differ. */
const beforeAfter = { error: 1 / 40, fewestSignals: 50, fewestDays: 7 }
/** A change is compared with the nearest earlier one that has as many signals. */
export const fewestBaseSignals = beforeAfter.fewestSignals
/** A forecast beyond a million signals would tell nothing. */
const farthest = 1_000_000
/** A note names a side without signals on at least this many last days of the other. */
const fewestMissedDays = 2

type Verdict = NonNullable<Impact['verdict']>

/** The difference is the head's rate less the base's; null while a side has no signals. */
type Comparison = Pick<Impact, 'difference' | 'signals_needed'> & { verdict: Verdict }

/** The signals of a change, and on how many days it has some. */
type Window = Counts & { days: number }

export const windowOf = (days: Counts[]): Window => ({ ...addCounts(days), days: days.length })

/** Compares the days of a change with those of an earlier one. There is no forecast for a change that is over. */
export function compareWindows(
  baseDays: Counts[],
  headDays: Counts[],
  wander: Wander,
  { margin, isOver }: { margin: number; isOver: boolean },
): Comparison {
  const [base, head] = [windowOf(baseDays), windowOf(headDays)]
  const signals = totalOf(head)
  if (signals === 0 || totalOf(base) === 0) return noComparison
  const growHead = (factor: number) => differenceOfWindows(base, grow(head, factor), wander)
  return decide(growHead, isOver ? null : signals, margin)
}

const noComparison: Comparison = { difference: null, verdict: 'undecided', signals_needed: null }

const grow = ({ positive, negative, days }: Window, factor: number): Window => ({
  positive: positive * factor,
  negative: negative * factor,
  days: days * factor,
})

/** The interval of the difference is wrong in at most a share `error` of comparisons. */
export function differenceOfWindows(base: Window, head: Window, wander: Wander, error = beforeAfter.error): Estimate {
  const value = positiveShare(head) - positiveShare(base)
  const { fewestSignals, fewestDays } = beforeAfter
  const isEarly = Math.min(totalOf(base), totalOf(head)) < fewestSignals || Math.max(base.days, head.days) < fewestDays
  if (isEarly) return unknownDifference(value)
  const ofChance = chanceOf([base, head]) * (1 / totalOf(base) + 1 / totalOf(head))
  return estimateDifference(value, ofChance + varianceBetween(wander, base.days, head.days), error)
}

/** The variance of one signal, at the rate of all. Not 0 even if all are equal: the next one may differ. */
function chanceOf(sides: Counts[]): number {
  const all = addCounts(sides)
  const rate = (all.positive + 1) / (totalOf(all) + 2)
  return rate * (1 - rate)
}

/** The difference with a multiple of the signals, at the rates so far. */
type Grow = (factor: number) => Estimate

/** The verdict follows from the interval, so they cannot contradict. Without a number of signals there is no forecast. */
function decide(differenceWith: Grow, signals: number | null, margin: number): Comparison {
  const difference = differenceWith(1)
  const verdict = verdictFor(difference, margin)
  const isOpen = verdict === 'undecided' && signals !== null
  return { difference, verdict, signals_needed: isOpen ? forecast(differenceWith, signals, margin) : null }
}

/** A difference that certainly lies within the margin is `same`, even if it certainly is not zero. */
export function verdictFor({ low, high }: Estimate, margin: number): Verdict {
  if (low >= -margin && high <= margin) return 'same'
  if (low > 0) return 'better'
  return high < 0 ? 'worse' : 'undecided'
}

/** The smallest number of further signals that decides, of two digits and zeros; null if none up to a million does. */
function forecast(differenceWith: Grow, signals: number, margin: number): number | null {
  for (let more = 1; more <= farthest; more += 10 ** Math.max(String(more).length - 2, 0)) {
    if (verdictFor(differenceWith((signals + more) / signals), margin) !== 'undecided') return more
  }
  return null
}

/**
 * Compares two versions by the days on which both have signals. The days are in order. A split that contradicts the expected
 * share of the head tells that one version is answered more often, so the difference would be one of who answers.
 */
export function compareSides(days: DayPair[], margin: number, expectedShare: number | null = null) {
  const common = days.filter(isCommon)
  const describe = (side: 'base' | 'head') => {
    const sum = addCounts(days.map((day) => day[side]))
    const compared = addCounts(common.map((day) => day[side]))
    const signals = { ...sum, total: totalOf(sum), compared: totalOf(compared) }
    return { signals, compared, mean: meanOf(common, side) }
  }
  const [base, head] = [describe('base'), describe('head')]
  const fewest = Math.min(totalOf(base.compared), totalOf(head.compared))
  const signals = totalOf(base.compared) + totalOf(head.compared)
  const value = positiveShare(head.mean) - positiveShare(base.mean)
  const ofChance = chanceOf([base.compared, head.compared]) / sumOf(common.map(weightOf))
  const differenceWith = (factor: number) =>
    fewest * factor < sideBySide.fewestSignals
      ? unknownDifference(value)
      : estimateDifference(value, ofChance / factor, sideBySide.error)
  const isWrong = expectedShare !== null && isSplitWrong(common, expectedShare)
  const compared = common.length === 0 || isWrong ? noComparison : decide(differenceWith, signals, margin)
  const share = signals === 0 ? null : totalOf(head.compared) / signals
  return {
    base: { signals: base.signals, rate: rateOf(base.mean) },
    head: { signals: head.signals, rate: rateOf(head.mean) },
    ...compared,
    reason: isWrong ? wrongSplit : reasonFor(days, common),
    notes: isWrong ? [noteSplit(share ?? 0, expectedShare), ...notesFor(days)] : notesFor(days),
    overlap: { days: common.length, from: common[0]?.date ?? null, until: common.at(-1)?.date ?? null },
    share: share && Math.round(share * scale) / scale,
    days,
  }
}

/**
 * Each day with signals of both is a block. Its weight w = n₁n₂/(n₁+n₂) is the same for both sides, so neither a rate that
 * drifts nor a share that changes from day to day is taken for a difference. The variance of a day's difference is p(1−p)/w,
 * so that of their weighted mean is p(1−p)/Σw.
 */
const weightOf = ({ base, head }: DayPair): number => (totalOf(base) * totalOf(head)) / (totalOf(base) + totalOf(head))

/** The weighted mean of a side's days, as counts: as many signals of equal weight, (Σw)²/Σ(w²/n), would be as precise. */
function meanOf(days: DayPair[], side: 'base' | 'head'): Counts {
  const weight = sumOf(days.map(weightOf))
  const spread = sumOf(days.map((day) => weightOf(day) ** 2 / totalOf(day[side])))
  const positive = sumOf(days.map((day) => (weightOf(day) * day[side].positive) / totalOf(day[side])))
  if (weight === 0) return addCounts([])
  return { positive: (positive * weight) / spread, negative: ((weight - positive) * weight) / spread }
}

const positiveShare = (counts: Counts): number => counts.positive / totalOf(counts)

const sumOf = (numbers: number[]): number => numbers.reduce((sum, number) => sum + number, 0)

/** Why there is no comparison; null if there is one. */
function reasonFor(days: DayPair[], common: DayPair[]): string | null {
  if (common.length > 0) return null
  const missing = (['base', 'head'] as const).filter((side) => days.every((day) => totalOf(day[side]) === 0))
  if (missing.length === 2) return 'Neither commit has signals.'
  return missing.length === 1 ? `The ${missing[0]} has no signals.` : 'There is no day with signals of both.'
}

const wrongSplit =
  'The split is not the expected one. Signals are answers, not assignments: one version is answered more often, so the ' +
  'rates are not comparable.'

function noteSplit(share: number, expected: number): string {
  const [observed, wanted] = [share, expected].map((one) => (one * 100).toPrecision(3))
  return `The head has ${observed} % of the signals on these days, not ${wanted} %. Chance does that in fewer than 1 of 1,000 comparisons.`
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
