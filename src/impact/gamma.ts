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
