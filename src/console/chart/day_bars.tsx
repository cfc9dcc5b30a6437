import type { Schemas } from '../client/api.ts'
import { formatDate, formatNumber } from '../parts/format.ts'

const [width, height] = [720, 120]

/** A bar for each day of the month. A table beside it has the figures. */
export function DayBars({ days }: { days: Schemas['UsageDay'][] }) {
  const most = Math.max(0, ...days.map(({ total }) => total))
  const heightOf = (total: number) => (total / Math.max(most, 1)) * height
  const step = width / Math.max(days.length, 1)
  return (
    <figure class="day-bars">
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true">
        <line class="sparkline-half" x1={0} x2={width} y1={height} y2={height} />
        {days.map(({ date, total }, index) => (
          <rect
            key={date}
            class="day-bar"
            x={index * step + step * 0.1}
            width={step * 0.8}
            y={height - heightOf(total)}
            height={heightOf(total)}
          >
            <title>{`${formatDate(date)}: ${formatNumber(total)}`}</title>
          </rect>
        ))}
      </svg>
      <figcaption class="fine">
        <span>{formatDate(days[0]?.date ?? '')}</span>
        <span>Busiest day: {formatNumber(most)}</span>
        <span>{formatDate(days.at(-1)?.date ?? '')}</span>
      </figcaption>
    </figure>
  )
}
