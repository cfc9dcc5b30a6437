import { type Estimate, rateOf } from '../../impact/rate.ts'

type Day = { positive: number; negative: number }
type DrawnDay = { x: number; rate: Estimate }

const [width, height, edge] = [120, 28, 2]

/** The height of a share in the picture, from 0 to 100 %. */
const y = (share: number): number => edge + (1 - share) * (height - 2 * edge)

const pathOf = (points: [x: number, share: number][]): string =>
  points.map(([x, share]) => `${x.toFixed(1)},${y(share).toFixed(1)}`).join(' ')

/**
 * The rate of each day as a line with its band, with gaps where there was nothing: a day of one signal is as uncertain as
 * it looks. The figures stand beside it.
 */
export function Sparkline({ days }: { days: Day[] }) {
  const step = (width - 2 * edge) / Math.max(1, days.length - 1)
  const runs: DrawnDay[][] = [[]]
  days.forEach((day, index) => {
    const rate = rateOf(day)
    if (!rate) runs.push([])
    else runs.at(-1)?.push({ x: edge + index * step, rate })
  })
  return (
    <svg class="sparkline" viewBox={`0 0 ${width} ${height}`} width={width} height={height} aria-hidden="true">
      <line class="sparkline-half" x1={0} x2={width} y1={height / 2} y2={height / 2} />
      {runs
        .filter((run) => run.length > 0)
        .map((run) => (
          <Run key={run[0]?.x} run={run} />
        ))}
    </svg>
  )
}

function Run({ run }: { run: DrawnDay[] }) {
  const [first] = run
  if (!first) return null
  if (run.length === 1) {
    return (
      <>
        <line class="sparkline-alone" x1={first.x} x2={first.x} y1={y(first.rate.low)} y2={y(first.rate.high)} />
        <circle class="sparkline-dot" cx={first.x} cy={y(first.rate.value)} r={1.5} />
      </>
    )
  }
  const along = (end: keyof Estimate) => run.map(({ x, rate }): [number, number] => [x, rate[end]])
  return (
    <>
      <polygon class="sparkline-band" points={pathOf([...along('high'), ...along('low').toReversed()])} />
      <polyline class="sparkline-line" points={pathOf(along('value'))} />
    </>
  )
}
