// Rates, their differences, and the intervals of both. The console imports this file in the browser.
import { type Counts, shareOf, totalOf } from '../lib/counts.ts'

/** A value and its interval. */
export type Estimate = { value: number; low: number; high: number }

/** Rates and differences have six digits after the point. */
export const scale = 1e6

/** The quantile of the normal distribution that leaves 2.5 % above it. */
const z = 1.959963984540054

/** The share of positive signals with its 95 % Wilson interval (1927); null without signals. */
export function rateOf(counts: Counts): Estimate | null {
  const { positive, negative } = counts
  const [total, value] = [totalOf(counts), shareOf(counts, scale)]
  if (value === null) return null
  const weight = total + z * z
  const centre = positive + (z * z) / 2
  const spread = z * Math.sqrt((positive * negative) / total + (z * z) / 4)
  const rounded = (share: number) => Math.round(Math.min(Math.max(share, 0), 1) * scale) / scale
  return { value, low: rounded((centre - spread) / weight), high: rounded((centre + spread) / weight) }
}

/** Each of the two sequences is wrong in at most one comparison in 40, so their intersection in at most one in 20. */
const jointThreshold = Math.log(40)
/** Each of the two sides is wrong in at most one comparison in 80. */
const separateThreshold = Math.log(80)

type End = -1 | 1

/**
 * The difference of two rates with an interval that stays valid however often one looks; null while a side has no signals.
 * The interval is the intersection of two confidence sequences:
 *
 * - joint: every δ with E(δ) < 40 (`logEvidence`): short, but it widens again if only one side grows;
 * - separate: the head's rates less the base's, each p with B(s+1, f+1) / (p^s (1−p)^f) < 80: wider, but never widens again.
 */
export function differenceOf(base: Counts, head: Counts): Estimate | null {
  if (totalOf(base) === 0 || totalOf(head) === 0) return null
  const value = observedDifference(base, head)
  const endOf = (end: End) => {
    const ends = [jointEnd(base, head, value, end), separateEnd(base, head, end)]
    return end < 0 ? Math.max(...ends) : Math.min(...ends)
  }
  // Rounds outwards, so that the interval shown contains the exact one.
  const low = Math.max(Math.floor(endOf(-1) * scale) / scale, -1)
  const high = Math.min(Math.ceil(endOf(1) * scale) / scale, 1)
  return { value: Math.round(value * scale) / scale, low, high }
}

export const observedDifference = (base: Counts, head: Counts): number =>
  head.positive / totalOf(head) - base.positive / totalOf(base)

/** Whether either of the two sequences rules a difference out. */
export function isRuledOut(base: Counts, head: Counts, difference: number): boolean {
  if (isRuledOutJointly(base, head, difference)) return true
  const end = difference < observedDifference(base, head) ? -1 : 1
  return end * (difference - separateEnd(base, head, end)) >= 0
}

const isRuledOutJointly = (base: Counts, head: Counts, difference: number): boolean =>
  logEvidence(base, head, difference) >= jointThreshold

const jointEnd = (base: Counts, head: Counts, observed: number, end: End): number =>
  findEnd(observed, end, (difference) => isRuledOutJointly(base, head, difference))

const separateEnd = (base: Counts, head: Counts, end: End): number =>
  endOfSide(head, end) - endOfSide(base, end === 1 ? -1 : 1)

function endOfSide(counts: Counts, end: End): number {
  const leastLikely = logMixture(counts) - separateThreshold
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

/**
 * ln E(δ), the evidence against a difference δ between the rates of two sides:
 *
 *   E(δ) = min over p of B(s₁+1, f₁+1) · B(s₂+1, f₂+1) / (p^s₁ (1−p)^f₁ (p+δ)^s₂ (1−p−δ)^f₂)
 *
 * where s and f are the positive and negative signals of each side. It is the likelihood of the signals averaged over all
 * rates, divided by their likelihood under the best pair of rates with that difference. For the true rates it is a
 * martingale of mean 1, so by Ville's inequality it ever reaches k in at most one comparison in k.
 */
export function logEvidence(base: Counts, head: Counts, difference: number): number {
  const rate = likeliestRate(base, head, difference)
  return logMixture(base) + logMixture(head) - (logLikelihood(base, rate) + logLikelihood(head, rate + difference))
}

/** The log likelihood of a side, averaged over all rates. */
const logMixture = ({ positive, negative }: Counts): number => logBeta(positive + 1, negative + 1)

function logLikelihood({ positive, negative }: Counts, rate: number): number {
  const ofPositive = positive === 0 ? 0 : positive * Math.log(Math.max(rate, 0))
  return negative === 0 ? ofPositive : ofPositive + negative * Math.log1p(-Math.min(rate, 1))
}

/**
 * The rate of the base that makes both sides likeliest if the head's rate differs by `difference`. The log likelihood is
 * concave, so Newton's method finds its maximum. A step that would leave the possible rates is replaced by halving.
 */
function likeliestRate(base: Counts, head: Counts, difference: number): number {
  const all = totalOf(base) + totalOf(head)
  const pooled = all === 0 ? 0.5 : (base.positive + head.positive) / all
  if (difference === 0) return pooled
  const [least, most] = [Math.max(0, -difference), Math.min(1, 1 - difference)]
  let [low, high] = [least, most]
  const first = pooled - (difference * totalOf(head)) / all
  let rate = first > low && first < high ? first : (low + high) / 2
  // Newton's method takes about five steps. 100 are enough for one that starts a rounding error away from an end, which
  // only doubles its distance with each step.
  for (let steps = 0; steps < 100; steps += 1) {
    const slope = slopeAt(base, rate) + slopeAt(head, rate + difference)
    if (slope === 0) return rate
    if (slope > 0) low = rate
    else high = rate
    const curvature = curvatureAt(base, rate) + curvatureAt(head, rate + difference)
    const step = slope / curvature
    // Halving would move away from a maximum that is already reached. Close to an end, a short step does not tell that.
    if (Math.abs(step) < Math.min(1e-14, (rate - least) / 2, (most - rate) / 2)) return rate
    const next = rate + step
    rate = next > low && next < high ? next : (low + high) / 2
  }
  return rate
}

/** The derivative of the log likelihood. A count of 0 adds nothing, even at the rates 0 and 1. */
const slopeAt = ({ positive, negative }: Counts, rate: number): number =>
  (positive && positive / rate) - (negative && negative / (1 - rate))

/** Its second derivative, with the sign changed. */
const curvatureAt = ({ positive, negative }: Counts, rate: number): number =>
  (positive && positive / (rate * rate)) + (negative && negative / ((1 - rate) * (1 - rate)))

const halfLogOfTwoPi = 0.5 * Math.log(2 * Math.PI)

/** ln Γ(x) for x > 0, by Stirling's series, which is exact from 10 on. Γ(x + 1) = x Γ(x) moves smaller arguments there. */
export function logGamma(x: number): number {
  let product = 1
  let at = x
  for (; at < 10; at += 1) product *= at
  const inverse = 1 / at
  const square = inverse * inverse
  const series =
    inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1_260 - square * (1 / 1_680 - square * (1 / 1_188)))))
  return (at - 0.5) * Math.log(at) - at + halfLogOfTwoPi + series - Math.log(product)
}

/** ln B(a, b), where B(a, b) = Γ(a) Γ(b) / Γ(a + b). */
export const logBeta = (a: number, b: number): number => logGamma(a) + logGamma(b) - logGamma(a + b)
