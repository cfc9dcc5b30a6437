import { type Estimate, isUnknown } from '../../impact/rate.ts'
import type { VerdictName } from '../parts/verdict.tsx'

const [width, height] = [160, 16]

/**
 * The one scale that all bars of a page are drawn on: the largest difference that an interval reaches, unless it is more than
 * twice as large as usual. A few wide intervals would shrink all others to a dot.
 */
export function reachOf(differences: (Estimate | null)[]): number {
  const known = differences.flatMap((one) => (one && !isUnknown(one) ? Math.max(-one.low, one.high) : []))
  const sorted = known.toSorted((a, b) => a - b)
  const usual = sorted[Math.floor((sorted.length - 1) / 2)] ?? 0
  return Math.max(0.05, Math.min(sorted.at(-1) ?? 0, 2 * usual))
}

type IntervalBarProps = { difference: Estimate; reach: number; tone: VerdictName }

/** A difference with its interval, on a line whose middle is no difference. The figures stand beside it. */
export function IntervalBar({ difference: { value, low, high }, reach, tone }: IntervalBarProps) {
  const x = (difference: number) => width / 2 + Math.min(Math.max(difference / reach, -1), 1) * (width / 2 - 4)
  // An end beyond the scale is an arrow.
  const end = (difference: number) => {
    const side = Math.sign(difference) * 4
    return Math.abs(difference) > reach ? `M${x(difference) - side} 4l${side} 4l${-side} 4` : `M${x(difference)} 4v8`
  }
  return (
    <svg class={`interval ${tone}`} viewBox={`0 0 ${width} ${height}`} width={width} height={height} aria-hidden="true">
      <line class="interval-zero" x1={width / 2} x2={width / 2} y1={0} y2={height} />
      <path class="interval-range" d={`${end(low)}${end(high)}M${x(low)} 8H${x(high)}`} />
      <circle class="interval-value" cx={x(value)} cy={height / 2} r={3.5} />
    </svg>
  )
}
