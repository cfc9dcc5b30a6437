import { blockByDay, type DayPair, isCommon } from './block.ts'
import { compare } from './compare.ts'
import { addCounts, type Counts, rateOf, scale, totalOf } from './rate.ts'

/** A side that ended is mentioned once it has missed as many days of the other. */
const fewestMissedDays = 2

/** Compares two versions by the days on which both have signals. The days are in order. */
export function compareSides(days: DayPair[], margin: number) {
  const common = days.filter(isCommon)
  const blocked = blockByDay(common)
  const [ofBase, ofHead] = [common.map(({ base }) => base), common.map(({ head }) => head)].map(addCounts) as [
    Counts,
    Counts,
  ]
  const signals = totalOf(ofBase) + totalOf(ofHead)
  const { difference, verdict, signalsNeeded } = compare(blocked.base, blocked.head, margin, { of: 'both', signals })
  return {
    base: describeSide(
      days.map(({ base }) => base),
      ofBase,
      blocked.base,
    ),
    head: describeSide(
      days.map(({ head }) => head),
      ofHead,
      blocked.head,
    ),
    difference,
    verdict,
    signals_needed: signalsNeeded,
    reason: reasonFor(days, common),
    notes: notesFor(days),
    overlap: { days: common.length, from: common[0]?.date ?? null, until: common.at(-1)?.date ?? null },
    share: signals === 0 ? null : Math.round((totalOf(ofHead) / signals) * scale) / scale,
    days,
  }
}

function describeSide(all: Counts[], onCommonDays: Counts, blocked: Counts) {
  const sum = addCounts(all)
  return { signals: { ...sum, total: totalOf(sum), compared: totalOf(onCommonDays) }, rate: rateOf(blocked) }
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
