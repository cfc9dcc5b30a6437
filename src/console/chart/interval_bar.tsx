import { type Estimate, isUnknown } from '../../impact/rate.ts'
import type { VerdictName } from '../parts/verdict.tsx'

const [width, height] = [160, 16]

/** The largest difference that any of the intervals reaches: the one scale that all bars of a page are drawn on. */
export const reachOf = (differences: (Estimate | null)[]): number =>
  Math.max(
    0.05,
    ...differences.flatMap((one) => (one && !isUnknown(one) ? [Math.abs(one.low), Math.abs(one.high)] : [])),
  )

type IntervalBarProps = { difference: Estimate; reach: number; tone: VerdictName }

/** A difference with its interval, on a line whose middle is no difference. The figures stand beside it. */
export function IntervalBar({ difference: { value, low, high }, reach, tone }: IntervalBarProps) {
  const x = (difference: number) => width / 2 + (difference / reach) * (width / 2 - 4)
  return (
    <svg class={`interval ${tone}`} viewBox={`0 0 ${width} ${height}`} width={width} height={height} aria-hidden="true">
      <line class="interval-zero" x1={width / 2} x2={width / 2} y1={0} y2={height} />
      <path class="interval-range" d={`M${x(low)} 4v8m0-4H${x(high)}m0-4v8`} />
      <circle class="interval-value" cx={x(value)} cy={height / 2} r={3.5} />
    </svg>
  )
}
