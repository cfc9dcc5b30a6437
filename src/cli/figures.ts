import type { Estimate } from '../impact/rate.ts'

/** The width of a drawing in characters. Odd, so that zero is in the middle. */
const width = 15

/** Draws an interval as ├──●──┤ on a scale from -reach to reach, with zero marked. */
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

const eighths = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']

/** Draws a share as a bar of up to 20 characters, to an eighth of one. A share above zero is always visible. */
export function drawBar(share: number): string {
  const length = share > 0 ? Math.max(Math.round(share * 20 * 8), 1) : 0
  return '█'.repeat(Math.floor(length / 8)) + eighths[length % 8]
}

const heights = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']

/** Draws one character per number, as high as its share of the largest. Zero is a dot. */
export function drawLine(numbers: number[]): string {
  const most = Math.max(...numbers, 1)
  return numbers.map((number) => (number === 0 ? '·' : heights[Math.ceil((number / most) * 8) - 1])).join('')
}

export const percent = (share: number): string => `${(share * 100).toFixed(1)} %`
