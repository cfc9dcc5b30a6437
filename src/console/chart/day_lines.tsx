import type { ComponentChildren } from 'preact'
import type { Estimate } from '../../impact/rate.ts'
import { formatDate } from '../parts/format.ts'
import { Line } from './line.tsx'

type DayEstimate = { date: string; estimate: Estimate | null }

type DayLinesProps = {
  base?: DayEstimate[]
  head: DayEstimate[]
  /** The values at the foot and at the top. */
  scale: [low: number, high: number]
  /** Of the top, the middle and the foot. */
  labels: string[]
  legend?: ComponentChildren
}

const [width, height] = [720, 200]

/** Estimates over the days, each line with its band. A table beside it has the figures. */
export function DayLines({ base, head, scale: [low, high], labels, legend }: DayLinesProps) {
  const [first, last] = [head[0]?.date, head.at(-1)?.date]
  if (!first || !last) return null
  const span = Math.max(1, Date.parse(last) - Date.parse(first))
  const x = (date: string) => 4 + ((Date.parse(date) - Date.parse(first)) / span) * (width - 8)
  const y = (value: number) => ((high - Math.min(Math.max(value, low), high)) / (high - low)) * height
  const placed = (days: DayEstimate[]) =>
    days.flatMap(({ date, estimate }) => (estimate ? [{ x: x(date), estimate }] : []))
  const marks = labels.map((label, index) => ({ label, top: (index * height) / (labels.length - 1) }))
  return (
    <figure class="day-lines">
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true">
        {marks.map(({ label, top }) => (
          <line key={label} class="mark" x1={0} x2={width} y1={top} y2={top} />
        ))}
        {base && <Line look="base" points={placed(base)} y={y} isDotted />}
        <Line look="head" points={placed(head)} y={y} isDotted />
      </svg>
      {marks.map(({ label, top }) => (
        <span key={label} class="mark-label" style={{ top: `${top}px` }}>
          {label}
        </span>
      ))}
      <figcaption class="fine">
        <span>{formatDate(first)}</span>
        {legend}
        <span>{formatDate(last)}</span>
      </figcaption>
    </figure>
  )
}
