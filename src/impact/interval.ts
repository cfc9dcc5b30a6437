import { logEvidence, logLikelihood, logMixture } from './evidence.ts'
import { type Counts, type Estimate, scale, totalOf } from './rate.ts'

/** Each of the two sequences is wrong in at most one history in 40, so their intersection in at most one in 20. */
const pairThreshold = Math.log(40)
/** Two sides, each wrong in at most one history in 80. */
const sideThreshold = Math.log(80)

type End = -1 | 1

/**
 * The difference of two rates with an interval that stays valid however often one looks; null while a side has no signals.
 * The interval is the intersection of two confidence sequences:
 *
 * 1. every δ with E(δ) < 40 (`logEvidence`): short, but it widens again if only one side grows;
 * 2. the head's rates less the base's, each p with B(s+1, f+1) / (p^s (1−p)^f) < 80: wider, but never widens again.
 */
export function differenceOf(base: Counts, head: Counts): Estimate | null {
  if (totalOf(base) === 0 || totalOf(head) === 0) return null
  const value = observedDifference(base, head)
  const endOf = (end: End) => {
    const ends = [endOfPair(base, head, value, end), endOfSides(base, head, end)]
    return end < 0 ? Math.max(...ends) : Math.min(...ends)
  }
  // Rounds outwards, so that the interval shown contains the exact one.
  const low = Math.max(Math.floor(endOf(-1) * scale) / scale, -1)
  const high = Math.min(Math.ceil(endOf(1) * scale) / scale, 1)
  return { value: Math.round(value * scale) / scale, low, high }
}

export const observedDifference = (base: Counts, head: Counts): number =>
  head.positive / totalOf(head) - base.positive / totalOf(base)

/** How far the first sequence is from ruling a difference out: from 0 on it is ruled out. */
export const excessOfPair = (base: Counts, head: Counts, difference: number): number =>
  logEvidence(base, head, difference) - pairThreshold

/** The same for the second sequence, which rules out what lies beyond its `end`. */
export const excessOfSides = (base: Counts, head: Counts, difference: number, end: End): number =>
  end * (difference - endOfSides(base, head, end))

/** Whether one of the sequences rules a difference out. */
export const isRuledOut = (base: Counts, head: Counts, difference: number): boolean =>
  excessOfPair(base, head, difference) >= 0 ||
  excessOfSides(base, head, difference, difference < observedDifference(base, head) ? -1 : 1) >= 0

const endOfPair = (base: Counts, head: Counts, observed: number, end: End): number =>
  findEnd(observed, end, (difference) => excessOfPair(base, head, difference) >= 0)

const endOfSides = (base: Counts, head: Counts, end: End): number =>
  endOfSide(head, end) - endOfSide(base, end === 1 ? -1 : 1)

function endOfSide(counts: Counts, end: End): number {
  const leastLikely = logMixture(counts) - sideThreshold
  const limit = end === 1 ? 1 : 0
  return findEnd(counts.positive / totalOf(counts), limit, (rate) => logLikelihood(counts, rate) <= leastLikely)
}

/** Finds where values begin to be ruled out from `within` towards `limit`; the limit if none is. */
function findEnd(within: number, limit: number, isBeyond: (value: number) => boolean): number {
  if (!isBeyond(limit)) return limit
  let [inner, outer] = [within, limit]
  while (Math.abs(outer - inner) > 1e-9) {
    const middle = (inner + outer) / 2
    if (isBeyond(middle)) outer = middle
    else inner = middle
  }
  return outer
}
