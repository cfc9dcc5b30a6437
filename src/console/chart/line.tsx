import type { Estimate } from '../../impact/rate.ts'

/** An estimate at its place on a chart. */
export type DrawnEstimate = { x: number; estimate: Estimate }

type LineProps = { look: string; points: DrawnEstimate[]; y(value: number): number; isDotted?: boolean }

/** Estimates as a line within the band of their intervals. One that stands alone is a point on its interval. */
export function Line({ look, points, y, isDotted = false }: LineProps) {
  const along = (end: keyof Estimate) =>
    points.map(({ x, estimate }) => `${x.toFixed(1)},${y(estimate[end]).toFixed(1)}`)
  const [alone] = points.length === 1 ? points : []
  const dots = alone || (isDotted && points.length < 60) ? points : []
  return (
    <g class={look}>
      {alone && (
        <line class="line-alone" x1={alone.x} x2={alone.x} y1={y(alone.estimate.low)} y2={y(alone.estimate.high)} />
      )}
      <polygon class="line-band" points={[...along('high'), ...along('low').toReversed()].join(' ')} />
      <polyline class="line" points={along('value').join(' ')} />
      {dots.map(({ x, estimate: { value } }) => (
        <line key={x} class="line-point" x1={x} x2={x} y1={y(value)} y2={y(value)} />
      ))}
    </g>
  )
}
