import type { Estimate } from '../impact/compare.ts'

/** The width of what is drawn within a line; odd, so that zero has a place of its own in the middle. */
const width = 21

/** An interval around a value as ├──●──┤, on a scale from -reach to reach with zero marked. */
export function drawInterval({ value, low, high }: Estimate, reach: number): string {
  const placeOf = (at: number) => Math.round(((at / reach + 1) / 2) * (width - 1))
  const isWithin = (place: number) => place >= placeOf(low) && place <= placeOf(high)
  const line: string[] = Array.from({ length: width }, (_, place) => (isWithin(place) ? '─' : ' '))
  line[placeOf(0)] = isWithin(placeOf(0)) ? '┼' : '┊'
  line[placeOf(low)] = '├'
  line[placeOf(high)] = '┤'
  line[placeOf(value)] = '●'
  return line.join('')
}
