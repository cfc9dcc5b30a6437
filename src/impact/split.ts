// Whether two versions that run side by side have the signals that their shares let expect.
import { type Counts, totalOf } from '../lib/counts.ts'

/** The signals of both sides on one day, UTC. */
export type DayPair = { date: string; base: Counts; head: Counts }

/** A share that holds is called wrong in at most one comparison in as many, however often one looks. */
const threshold = Math.log(1_000)

/** Whether the days with signals of both contradict the expected share of the head. */
export const isSplitWrong = (common: DayPair[], share: number): boolean => logSplitEvidence(common, share) > threshold

/**
 * ln E, the evidence against a share q of the head, for n₁ signals of the base and n₂ of the head:
 *
 *   E = B(n₂+1, n₁+1) / (qⁿ² (1−q)ⁿ¹) · Π (1 − qⁿ − (1−q)ⁿ)
 *
 * It is the likelihood of the split averaged over all shares, divided by that under q. Only days with signals of both count:
 * with few signals, that favours the smaller side, so the product has, for the n signals of each day, how likely both have
 * some. If q holds, the mean of E is at most 1 after each day, so by Ville's inequality it ever exceeds k in at most one
 * comparison in k.
 */
export function logSplitEvidence(common: DayPair[], share: number): number {
  let [ofBase, ofHead, logBoth] = [0, 0, 0]
  for (const { base, head } of common) {
    ofBase += totalOf(base)
    ofHead += totalOf(head)
    const total = totalOf(base) + totalOf(head)
    logBoth += Math.log(1 - share ** total - (1 - share) ** total)
  }
  const logMixture = logGamma(ofHead + 1) + logGamma(ofBase + 1) - logGamma(ofHead + ofBase + 2)
  return logMixture - (ofHead * Math.log(share) + ofBase * Math.log1p(-share)) + logBoth
}

/** ln Γ(x) for x > 0, by Stirling's series, which is exact from 10 on. Γ(x + 1) = x Γ(x) moves smaller arguments there. */
function logGamma(x: number): number {
  let [product, at] = [1, x]
  for (; at < 10; at += 1) product *= at
  const square = 1 / at ** 2
  const series = (1 / 12 - square * (1 / 360 - square * (1 / 1_260 - square * (1 / 1_680 - square / 1_188)))) / at
  return (at - 0.5) * Math.log(at) - at + Math.log(2 * Math.PI) / 2 + series - Math.log(product)
}
