import { type Counts, totalOf } from './rate.ts'

/** The signals of both sides on one day, UTC. */
export type DayPair = { date: string; base: Counts; head: Counts }

export const isCommon = ({ base, head }: DayPair): boolean => totalOf(base) > 0 && totalOf(head) > 0

/**
 * The effective counts of two sides that ran at the same time. Each day with signals of both is a block: it counts by its
 * weight n₁n₂/(n₁+n₂), the same for both sides, so neither a rate that drifts nor a share that changes from day to day is
 * taken for a difference. A side has twice the sum of the weights, at its weighted mean rate.
 */
export function blockByDay(days: DayPair[]): { base: Counts; head: Counts } {
  const blocked = { base: { positive: 0, negative: 0 }, head: { positive: 0, negative: 0 } }
  for (const day of days.filter(isCommon)) {
    const [ofBase, ofHead] = [totalOf(day.base), totalOf(day.head)]
    const weight = (ofBase * ofHead) / (ofBase + ofHead)
    for (const side of ['base', 'head'] as const) {
      const factor = (2 * weight) / totalOf(day[side])
      blocked[side].positive += day[side].positive * factor
      blocked[side].negative += day[side].negative * factor
    }
  }
  return blocked
}
