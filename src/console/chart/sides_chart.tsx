import { type Counts, type Estimate, rateOf } from '../../impact/rate.ts'
import { formatDate, formatPercent } from '../parts/format.ts'

type Day = { date: string; base: Counts; head: Counts }
type Point = { x: number; rate: Estimate }

const [width, height] = [720, 200]

const y = (share: number): number => (1 - share) * height

const pathOf = (points: [x: number, share: number][]): string =>
  points.map(([x, share]) => `${x.toFixed(1)},${y(share).toFixed(1)}`).join(' ')

/** The rates of two versions over the days, each with its band. A table beside it has the figures. */
export function SidesChart({ days, names }: { days: Day[]; names: { base: string; head: string } }) {
  const [first, last] = [days[0]?.date, days.at(-1)?.date]
  if (!first || !last) return null
  const span = Math.max(1, Date.parse(last) - Date.parse(first))
  const x = (date: string) => 4 + ((Date.parse(date) - Date.parse(first)) / span) * (width - 8)
  const pointsOf = (side: 'base' | 'head'): Point[] =>
    days.flatMap((day) => {
      const rate = rateOf(day[side])
      return rate ? [{ x: x(day.date), rate }] : []
    })
  return (
    <figure class="sides">
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true">
        {[0, 0.5, 1].map((share) => (
          <line key={share} class="sides-line" x1={0} x2={width} y1={y(share)} y2={y(share)} />
        ))}
        <Side name="base" points={pointsOf('base')} />
        <Side name="head" points={pointsOf('head')} />
      </svg>
      {[0, 0.5, 1].map((share) => (
        <span key={share} class="sides-label" style={{ top: `${y(share)}px` }}>
          {formatPercent(share)}
        </span>
      ))}
      <figcaption class="fine">
        <span>{formatDate(first)}</span>
        <span class="row">
          <span class="key key-head">{names.head}</span>
          <span class="key key-base">{names.base}</span>
        </span>
        <span>{formatDate(last)}</span>
      </figcaption>
    </figure>
  )
}

function Side({ name, points }: { name: string; points: Point[] }) {
  const along = (end: keyof Estimate) => points.map(({ x, rate }): [number, number] => [x, rate[end]])
  return (
    <g class={`side-${name}`}>
      <polygon class="side-band" points={pathOf([...along('high'), ...along('low').toReversed()])} />
      <polyline class="side-rate" points={pathOf(along('value'))} />
      {points.length < 60 &&
        points.map(({ x, rate }) => (
          <line key={x} class="side-point" x1={x} x2={x} y1={y(rate.value)} y2={y(rate.value)} />
        ))}
    </g>
  )
}
