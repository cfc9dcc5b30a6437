import type { Estimate } from '../../impact/rate.ts'
import { formatDate } from '../parts/format.ts'
import { reachOf } from './interval_bar.tsx'

const [width, height] = [720, 160]

/** How a difference and its interval moved over the days. A table beside it has the figures. */
export function DifferenceChart({ days }: { days: { date: string; difference: Estimate | null }[] }) {
  const known = days.flatMap(({ date, difference }) => (difference ? [{ date, ...difference }] : []))
  const [first, last] = [known[0], known.at(-1)]
  if (!first || !last) return null
  const reach = reachOf(known)
  const span = Math.max(1, Date.parse(last.date) - Date.parse(first.date))
  const x = (date: string) => 4 + ((Date.parse(date) - Date.parse(first.date)) / span) * (width - 8)
  const y = (difference: number) => height / 2 - (difference / reach) * (height / 2)
  const along = (end: keyof Estimate) => known.map((day) => `${x(day.date).toFixed(1)},${y(day[end]).toFixed(1)}`)
  const points = Math.round(reach * 100)
  return (
    <figure class="sides difference-chart">
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true">
        {[-reach, 0, reach].map((difference) => (
          <line key={difference} class="sides-line" x1={0} x2={width} y1={y(difference)} y2={y(difference)} />
        ))}
        <g class="side-head">
          <polygon class="side-band" points={[...along('high'), ...along('low').toReversed()].join(' ')} />
          <polyline class="side-rate" points={along('value').join(' ')} />
          {known.length < 60 &&
            known.map(({ date, value }) => (
              <line key={date} class="side-point" x1={x(date)} x2={x(date)} y1={y(value)} y2={y(value)} />
            ))}
        </g>
      </svg>
      {[
        [`+${points} points`, -1],
        ['no difference', 0],
        [`−${points} points`, 1],
      ].map(([text, place]) => (
        <span key={text} class="sides-label" style={{ top: `${((Number(place) + 1) * height) / 2}px` }}>
          {text}
        </span>
      ))}
      <figcaption class="fine">
        <span>{formatDate(first.date)}</span>
        <span>{formatDate(last.date)}</span>
      </figcaption>
    </figure>
  )
}
