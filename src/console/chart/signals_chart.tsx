import { useEffect, useRef, useState } from 'preact/hooks'
import type uPlot from 'uplot'
import { rateOf } from '../../impact/rate.ts'
import { countOf, formatMoment, formatNumber, formatPercent } from '../parts/format.ts'
import { type Flag, gather, type Marker } from './markers.ts'
import { drawMarkers, plotOptions } from './plot.ts'
import { type Point, toColumns } from './points.ts'

type SignalsChartProps = {
  points: Point[]
  markers: Marker[]
  /** The name of an interval, as it is shown. */
  nameOf(start: string): string
  onZoom(from: Date, until: Date): void
  /** A flag was followed to the row of this change. */
  onFlag(id: number): void
}

const height = 320

/**
 * The rate as a line with its band, the counts as bars to both sides of zero, and a flag for each change. The pointer and
 * the arrow keys walk over the intervals, and what is under them stands below the chart.
 */
export function SignalsChart({ points, markers, nameOf, onZoom, onFlag }: SignalsChartProps) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(null)
  const [flags, setFlags] = useState<Flag[]>([])
  const [index, setIndex] = useState<number | null>(null)
  const scheme = useColourScheme()
  const columns = toColumns(points)
  const point = index === null ? undefined : points[index]

  useEffect(() => {
    let isGone = false
    let observer: ResizeObserver | undefined
    const markerTimes = markers.map(({ time }) => new Date(time).getTime() / 1_000)
    const placeFlags = (drawn: uPlot) => {
      const left = drawn.bbox.left / devicePixelRatio
      const inside = markers
        .map((marker, index) => ({ marker, x: drawn.valToPos(markerTimes[index] as number, 'x') }))
        .filter(({ x }) => x >= 0 && x <= drawn.bbox.width / devicePixelRatio)
      setFlags(gather(inside.map(({ marker, x }) => ({ marker, left: Math.round(left + x) }))))
    }
    import('uplot').then(({ default: library }) => {
      const target = place.current
      if (isGone || !target) return
      const size = { width: target.clientWidth, height }
      const options = plotOptions(library, columns, size, {
        onDraw(drawn) {
          drawMarkers(drawn, markerTimes)
          placeFlags(drawn)
        },
        onPoint: setIndex,
        onSelect: (from, until) => onZoom(new Date(from * 1_000), new Date(until * 1_000)),
      })
      const { x, positive, negative, low, high, rate } = columns
      plot.current = new library(options, [x, positive, negative, low, high, rate], target)
      observer = new ResizeObserver(() => plot.current?.setSize({ width: target.clientWidth, height }))
      observer.observe(target)
    })
    return () => {
      isGone = true
      observer?.disconnect()
      plot.current?.destroy()
      plot.current = null
    }
  }, [points, markers, scheme])

  /** Puts the cursor on an interval, as the pointer would. */
  const walk = (event: KeyboardEvent) => {
    const last = points.length - 1
    const at = index ?? (event.key === 'ArrowLeft' ? points.length : -1)
    const target = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }[event.key]
    if (target === undefined || !plot.current) return
    event.preventDefault()
    const next = Math.min(Math.max(target, 0), last)
    plot.current.setCursor({ left: plot.current.valToPos(columns.x[next] as number, 'x'), top: 10 })
    setIndex(next)
  }

  return (
    <figure class="chart">
      <div class="flags">
        {flags.map(({ left, markers }) => (
          <a
            key={markers[0]?.id}
            class="flag"
            href={`#change-${markers.at(-1)?.id}`}
            onClick={() => onFlag(markers.at(-1)?.id as number)}
            style={{ left: `${left}px` }}
            title={markers.map(({ label, time }) => `${label}, ${formatMoment(time)}`).join('\n')}
          >
            {markers.length === 1 ? markers[0]?.label : countOf(markers.length, 'change')}
          </a>
        ))}
      </div>
      <div
        class="plot"
        ref={place}
        role="slider"
        tabIndex={0}
        aria-label="The signals over time"
        aria-valuemin={0}
        aria-valuemax={points.length - 1}
        aria-valuenow={index ?? 0}
        aria-valuetext={point ? textOf(point, nameOf) : 'The arrow keys walk over the chart'}
        onKeyDown={walk}
      />
      <figcaption class="reading">{point ? <Reading point={point} nameOf={nameOf} /> : <Legend />}</figcaption>
    </figure>
  )
}

const Legend = () => (
  <>
    <span class="key key-rate">share of positive, with its uncertainty</span>
    <span class="key key-positive">positive</span>
    <span class="key key-negative">negative</span>
  </>
)

type ReadingProps = { point: Point; nameOf(start: string): string }

function Reading({ point: { start, positive, negative }, nameOf }: ReadingProps) {
  const rate = rateOf({ positive, negative })
  return (
    <>
      <strong>{nameOf(start)}</strong>
      {rate ? (
        <>
          <span class="key key-rate">
            {formatPercent(rate.value)} positive (between {formatPercent(rate.low)} and {formatPercent(rate.high)})
          </span>
          <span class="key key-positive">{formatNumber(positive)} positive</span>
          <span class="key key-negative">{formatNumber(negative)} negative</span>
        </>
      ) : (
        <span>no signals</span>
      )}
    </>
  )
}

/** The same for those who hear it. */
function textOf({ start, positive, negative }: Point, nameOf: (start: string) => string): string {
  const rate = rateOf({ positive, negative })
  if (!rate) return `${nameOf(start)}: no signals`
  return `${nameOf(start)}: ${formatPercent(rate.value)} positive, of ${countOf(positive + negative, 'signal')}`
}

/** Changes with the reader's choice of light or dark, so that the chart is drawn anew in the other colours. */
function useColourScheme(): boolean {
  const dark = matchMedia('(prefers-color-scheme: dark)')
  const [isDark, setDark] = useState(dark.matches)
  useEffect(() => {
    const watch = () => setDark(dark.matches)
    dark.addEventListener('change', watch)
    return () => dark.removeEventListener('change', watch)
  }, [])
  return isDark
}
