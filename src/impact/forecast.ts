import { excessOfPair, excessOfSides, observedDifference } from './interval.ts'
import { type Counts, divideCounts } from './rate.ts'

/** Which sides get more signals, and how many signals these sides have now. */
export type Growth = { of: 'head' | 'both'; signals: number }

/** A forecast beyond a million signals would tell nothing. */
const farthest = 2 ** 20

/**
 * The smallest number of further signals that decides, at the rates so far, rounded up to two digits. Null if no number up
 * to a million does: a side that gets no more signals stays uncertain.
 */
export function forecast(base: Counts, head: Counts, margin: number, { of, signals }: Growth): number | null {
  const observed = observedDifference(base, head)
  const grow = (more: number): [Counts, Counts] => {
    const share = signals / (signals + more)
    return [of === 'both' ? divideCounts(base, share) : base, divideCounts(head, share)]
  }
  /** How far each sequence is from ruling a difference out with more signals. */
  const excessesAt = (difference: number): [Excess, Excess] => [
    (more) => excessOfPair(...grow(more), difference),
    (more) => excessOfSides(...grow(more), difference, difference < observed ? -1 : 1),
  ]
  const atZero = excessesAt(0)
  const atMargins = Math.abs(observed) < margin ? [excessesAt(-margin), excessesAt(margin)] : []
  const decides = (more: number) => {
    const isRuledOut = (excesses: Excess[]) => excesses.some((excess) => excess(more) >= 0)
    return isRuledOut(atZero) || (atMargins.length > 0 && atMargins.every(isRuledOut))
  }
  // It is decided from where one of the sequences begins to rule one of the differences out.
  const candidates = [atZero, ...atMargins].flatMap(([ofPair, ofSides]) => [findFirst(ofPair), findOnly(ofSides)])
  const enough = candidates
    .filter((more) => more !== null && decides(more))
    .toSorted((a, b) => Number(a) - Number(b))[0]
  if (!enough) return null
  const unit = 10 ** Math.max(Math.floor(Math.log10(enough)) - 1, 0)
  const rounded = Math.ceil(enough / unit) * unit
  // The first sequence may rule a difference out only for a while.
  return decides(rounded) ? rounded : enough
}

type Excess = (more: number) => number

/** For the second sequence, whose excess only grows. */
const findOnly = (excess: Excess): number | null => (excess(farthest) < 0 ? null : bisect(excess, 0, farthest))

/**
 * For the first sequence, whose excess may fall, then rise, then fall again as one side outgrows the other. So its peak may
 * lie between two powers of two. Around a peak the excess is concave in the logarithm of the number.
 */
function findFirst(excess: Excess): number | null {
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

/** Ternary search. */
function findPeak(excess: Excess, from: number, to: number): number {
  let [low, high] = [Math.floor(from), to]
  while (high - low > 2) {
    const third = Math.floor((high - low) / 3)
    if (excess(low + third) < excess(high - third)) low += third
    else high -= third
  }
  return Math.floor((low + high) / 2)
}
