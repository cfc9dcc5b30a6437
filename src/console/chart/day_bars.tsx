import type { Schemas } from '../client/api.ts'
import { formatDate, formatNumber } from '../parts/format.ts'

/** A bar for each day of the month. A table beside it has the figures. */
export function DayBars({ days }: { days: Schemas['UsageDay'][] }) {
  const most = Math.max(0, ...days.map(({ total }) => total))
  return (
    <figure class="day-bars">
      <div aria-hidden="true">
        {days.map(({ date, total }) => (
          <span
            key={date}
            class="day-bar"
            style={{ height: `${(100 * total) / Math.max(most, 1)}%` }}
            title={`${formatDate(date)}: ${formatNumber(total)}`}
          />
        ))}
      </div>
      <figcaption class="fine">
        <span>{formatDate(days[0]?.date ?? '')}</span>
        <span>Busiest day: {formatNumber(most)}</span>
        <span>{formatDate(days.at(-1)?.date ?? '')}</span>
      </figcaption>
    </figure>
  )
}
