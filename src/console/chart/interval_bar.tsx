import type { Estimate } from '../../impact/rate.ts'

const [width, height] = [160, 16]

/** The largest difference that any of the intervals reaches: the one scale that all bars of a page are drawn on. */
export const reachOf = (differences: (Estimate | null)[]): number =>
  Math.max(0.05, ...differences.flatMap((one) => (one ? [Math.abs(one.low), Math.abs(one.high)] : [])))

type IntervalBarProps = { difference: Estimate; reach: number; tone: 'better' | 'worse' | 'same' | 'undecided' }

/** A difference with its interval, on a line whose middle is no difference. The figures stand beside it. */
export function IntervalBar({ difference: { value, low, high }, reach, tone }: IntervalBarProps) {
  const x = (difference: number) => width / 2 + (difference / reach) * (width / 2 - 4)
  const middle = height / 2
  return (
    <svg
      class={`interval interval-${tone}`}
      viewBox={`0 0 ${width} ${height}`}
      width={width}
      height={height}
      aria-hidden="true"
    >
      <line class="interval-zero" x1={width / 2} x2={width / 2} y1={0} y2={height} />
      <line class="interval-range" x1={x(low)} x2={x(high)} y1={middle} y2={middle} />
      <line class="interval-end" x1={x(low)} x2={x(low)} y1={middle - 4} y2={middle + 4} />
      <line class="interval-end" x1={x(high)} x2={x(high)} y1={middle - 4} y2={middle + 4} />
      <circle class="interval-value" cx={x(value)} cy={middle} r={3.5} />
    </svg>
  )
}
