import { rateOf } from '../../impact/rate.ts'
import type { Counts } from '../../lib/counts.ts'
import { type DrawnEstimate, Line } from './line.tsx'

const [width, height, edge] = [120, 28, 2]

/** A point is made of as many days as it takes to know its rate within half of the scale. */
const widestInterval = 0.5

/** The height of a share in the picture, from 0 to 100 %. */
const y = (share: number): number => edge + (1 - share) * (height - 2 * edge)

/** The rate over the days as a line with its band. The figures stand beside it. */
export function Sparkline({ days }: { days: Counts[] }) {
  return (
    <svg class="sparkline" viewBox={`0 0 ${width} ${height}`} width={width} height={height} aria-hidden="true">
      <line class="sparkline-half" x1={0} x2={width} y1={height / 2} y2={height / 2} />
      {runsOf(days).map((run) => (
        <Line key={run[0]?.x} look="head" points={run} y={y} />
      ))}
    </svg>
  )
}

/**
 * Gathers days into points, so that a day with few signals, such as today in the morning, does not look like a fall
 * or a rise. A day without signals ends a run, unless the days before it are still to be gathered.
 */
function runsOf(days: Counts[]): DrawnEstimate[][] {
  const step = (width - 2 * edge) / Math.max(1, days.length - 1)
  const runs: DrawnEstimate[][] = [[]]
  let gathered = { positive: 0, negative: 0, first: 0 }
  const add = (last: number) => {
    const rate = rateOf(gathered)
    if (rate) runs.at(-1)?.push({ x: edge + ((gathered.first + last) / 2) * step, estimate: rate })
    gathered = { positive: 0, negative: 0, first: last + 1 }
  }
  days.forEach(({ positive, negative }, index) => {
    gathered.positive += positive
    gathered.negative += negative
    const rate = rateOf(gathered)
    if (rate && rate.high - rate.low <= widestInterval) add(index)
    else if (!rate) {
      runs.push([])
      gathered.first = index + 1
    }
  })
  // The rest says too little, and is drawn only if there is nothing else.
  if (runs.every((run) => run.length === 0)) add(days.length - 1)
  return runs.filter((run) => run.length > 0)
}
