import { type Counts, totalOf } from './rate.ts'

/**
 * ln E(δ), the evidence against a difference δ between the rates of two sides:
 *
 *   E(δ) = min over p of B(s₁+1, f₁+1) · B(s₂+1, f₂+1) / (p^s₁ (1−p)^f₁ (p+δ)^s₂ (1−p−δ)^f₂)
 *
 * where s and f are the positive and negative signals of each side. It is the likelihood of the signals averaged over all
 * rates, divided by their likelihood under the best pair of rates with that difference. For the true rates it is a
 * martingale of mean 1, so by Ville's inequality it ever reaches k in at most one history in k.
 */
export function logEvidence(base: Counts, head: Counts, difference: number): number {
  const rate = likeliestRate(base, head, difference)
  return logMixture(base) + logMixture(head) - (logLikelihood(base, rate) + logLikelihood(head, rate + difference))
}

/** The log likelihood of a side, averaged over all rates. */
export const logMixture = ({ positive, negative }: Counts): number => logBeta(positive + 1, negative + 1)

export function logLikelihood({ positive, negative }: Counts, rate: number): number {
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
  let low = Math.max(0, -difference)
  let high = Math.min(1, 1 - difference)
  const first = pooled - (difference * totalOf(head)) / all
  let rate = first > low && first < high ? first : (low + high) / 2
  // Newton's method takes about five steps. With 60, even halving would use up the digits of a double.
  for (let steps = 0; steps < 60; steps += 1) {
    const slope = slopeAt(base, rate) + slopeAt(head, rate + difference)
    if (slope === 0) return rate
    if (slope > 0) low = rate
    else high = rate
    const curvature = curvatureAt(base, rate) + curvatureAt(head, rate + difference)
    // Checked before halving, which would leave a rate that cannot get any closer.
    if (Math.abs(slope / curvature) < 1e-14) return rate
    const next = rate + slope / curvature
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
