const halfLogOfTwoPi = 0.5 * Math.log(2 * Math.PI)

/** From here on the series below is exact to the last digits of a double. */
const seriesFrom = 10

/** The natural logarithm of Γ(x) for x > 0, by Stirling's series; small arguments are first moved up by Γ(x + 1) = x Γ(x). */
export function logGamma(x: number): number {
  let product = 1
  let at = x
  for (; at < seriesFrom; at += 1) product *= at
  const inverse = 1 / at
  const square = inverse * inverse
  const series =
    inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1_260 - square * (1 / 1_680 - square * (1 / 1_188)))))
  return (at - 0.5) * Math.log(at) - at + halfLogOfTwoPi + series - Math.log(product)
}

/** The natural logarithm of B(a, b) = Γ(a) Γ(b) / Γ(a + b). */
export const logBeta = (a: number, b: number): number => logGamma(a) + logGamma(b) - logGamma(a + b)
