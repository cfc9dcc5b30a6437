import { type Counts, type Estimate, scale, totalOf } from './rate.ts'
import type { Impact } from './schema.ts'

type Comparison = {
  /** The later rate less the earlier one; null while a side has no signals. */
  difference: Estimate | null
  verdict: NonNullable<Impact['verdict']>
  /** How many more signals of the later side would decide it, at the rates so far; null if decided or out of reach. */
  signalsNeeded: number | null
}

/** Rules a difference out at E = 20: true ones are ruled out in at most one history in twenty, however often one looks. */
const logThreshold = Math.log(20)
/** A forecast beyond a million signals would tell nothing. */
const farthestForecast = 2 ** 20

/**
 * Compares two sides. The result stays valid however often one looks while signals arrive. The evidence against a
 * difference δ is
 *
 *   E(δ) = min over p of B(s₁+1, f₁+1) · B(s₂+1, f₂+1) / (p^s₁ (1−p)^f₁ (p+δ)^s₂ (1−p−δ)^f₂)
 *
 * where s and f are the positive and negative signals of each side. It is the likelihood of the signals averaged over all
 * rates, divided by their likelihood under the best pair of rates with that difference. For the true rates it is a
 * martingale of mean 1, so by Ville's inequality it ever reaches 20 in at most one history in twenty. The interval is every
 * δ with E(δ) < 20. The verdict is read from the interval, so the two cannot contradict each other.
 *
 * A difference that certainly lies within the margin is `same`, even if it certainly is not zero.
 */
export function compare(base: Counts, head: Counts, margin: number): Comparison {
  const difference = differenceOf(base, head)
  const verdict = difference ? verdictFor(difference, margin) : 'undecided'
  const signalsNeeded = verdict === 'undecided' ? forecast(base, head, margin) : null
  return { difference, verdict, signalsNeeded }
}

function verdictFor({ low, high }: Estimate, margin: number): Comparison['verdict'] {
  if (low >= -margin && high <= margin) return 'same'
  if (low > 0) return 'better'
  return high < 0 ? 'worse' : 'undecided'
}

function differenceOf(base: Counts, head: Counts): Estimate | null {
  if (totalOf(base) === 0 || totalOf(head) === 0) return null
  const value = observedDifference(base, head)
  // Rounds outwards, so that the interval shown contains the exact one.
  const low = Math.max(Math.floor(findEnd(base, head, value, -1) * scale) / scale, -1)
  const high = Math.min(Math.ceil(findEnd(base, head, value, 1) * scale) / scale, 1)
  return { value: Math.round(value * scale) / scale, low, high }
}

const observedDifference = (base: Counts, head: Counts): number =>
  head.positive / totalOf(head) - base.positive / totalOf(base)

/** Finds the end of the interval towards `limit`. The evidence grows with the distance from the observed difference. */
function findEnd(base: Counts, head: Counts, observed: number, limit: -1 | 1): number {
  const isRuledOut = (difference: number) => logEvidence(base, head, difference) >= logThreshold
  if (!isRuledOut(limit)) return limit
  let [within, outside] = [observed, limit as number]
  while (Math.abs(outside - within) > 1e-9) {
    const middle = (within + outside) / 2
    if (isRuledOut(middle)) outside = middle
    else within = middle
  }
  return outside
}

/** ln E(δ): the evidence against this difference. */
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
  if (difference === 0) return all === 0 ? 0.5 : (base.positive + head.positive) / all
  let low = Math.max(0, -difference)
  let high = Math.min(1, 1 - difference)
  let rate = (low + high) / 2
  // Newton's method takes about ten steps. With 60, even halving would use up the digits of a double.
  for (let steps = 0; steps < 60; steps += 1) {
    const [p, q, r, t] = [rate, 1 - rate, rate + difference, 1 - rate - difference]
    const slope = ratio(base.positive, p) - ratio(base.negative, q) + ratio(head.positive, r) - ratio(head.negative, t)
    if (slope === 0) return rate
    if (slope > 0) low = rate
    else high = rate
    const curvature =
      ratio(base.positive, p * p) +
      ratio(base.negative, q * q) +
      ratio(head.positive, r * r) +
      ratio(head.negative, t * t)
    const next = rate + slope / curvature
    const step = next > low && next < high ? next : (low + high) / 2
    if (Math.abs(step - rate) < 1e-14) return step
    rate = step
  }
  return rate
}

const ratio = (count: number, by: number): number => (count === 0 ? 0 : count / by)

/**
 * How many more signals the later side needs for a verdict, at the rates so far, rounded up to two digits. Null if no
 * number is enough: the earlier side gets no more signals, so its uncertainty stays.
 */
function forecast(base: Counts, head: Counts, margin: number): number | null {
  const total = totalOf(head)
  if (total === 0 || totalOf(base) === 0) return null
  const isDecided = (more: number) => {
    const grown = (total + more) / total
    return decides(base, { positive: head.positive * grown, negative: head.negative * grown }, margin)
  }
  let [tooFew, enough] = [0, 1]
  while (!isDecided(enough)) {
    if (enough >= farthestForecast) return null
    tooFew = enough
    enough *= 2
  }
  while (enough - tooFew > Math.max(enough / 200, 1)) {
    const middle = Math.floor((tooFew + enough) / 2)
    if (isDecided(middle)) enough = middle
    else tooFew = middle
  }
  const unit = 10 ** Math.max(Math.floor(Math.log10(enough)) - 1, 0)
  return Math.ceil(enough / unit) * unit
}

/** Whether there is a verdict. Cheaper than finding the ends of the interval. */
function decides(base: Counts, head: Counts, margin: number): boolean {
  if (logEvidence(base, head, 0) >= logThreshold) return true
  if (Math.abs(observedDifference(base, head)) > margin) return false
  return logEvidence(base, head, margin) >= logThreshold && logEvidence(base, head, -margin) >= logThreshold
}

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
