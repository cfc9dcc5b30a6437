import { addCounts, type Counts, divideCounts, totalOf } from '../lib/counts.ts'
import { compare } from './compare.ts'
import { rateOf, scale } from './rate.ts'

/** The signals of both sides on one day, UTC. */
export type DayPair = { date: string; base: Counts; head: Counts }

/** A note names a side without signals on at least this many last days of the other. */
const fewestMissedDays = 2

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
