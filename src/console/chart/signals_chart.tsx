import { useEffect, useRef, useState } from 'preact/hooks'
import type uPlot from 'uplot'
import { rateOf } from '../../impact/rate.ts'
import { countOf, formatMoment, formatNumber, formatPercent } from '../parts/format.ts'
import { FailureNote } from '../parts/states.tsx'
import { drawLonePoints, drawMarkers, plotOptions } from './plot.ts'
import { type Interval, type Point, toColumns } from './points.ts'

/** Something that happened, as a flag on the chart that leads to an anchor of the page. */
type Marker = { anchor: string; time: string; label: string; title: string | null | undefined; isChange: boolean }

/** Flags that would overlap are one, with their number. */
type Flag = { left: number; markers: Marker[] }

type SignalsChartProps = {
  points: Point[]
  interval: Interval
  markers: Marker[]
  /** The name of an interval, as it is shown. */
  nameOf(start: string): string
  onZoom(from: Date, until: Date): void
  /** A flag was followed to its anchor. */
  onFlag(anchor: string): void
}

const height = 320

/**
 * The rate as a line with its band, the counts as bars to both sides of zero, and a flag for each change. The pointer and
 * the arrow keys walk over the intervals, and what is under them stands below the chart.
 */
export function SignalsChart({ points, interval, markers, nameOf, onZoom, onFlag }: SignalsChartProps) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(null)
  const [flags, setFlags] = useState<Flag[]>([])
  const [index, setIndex] = useState<number | null>(null)
  const [isMissing, setMissing] = useState(false)
  const scheme = useColourScheme()
  const columns = toColumns(points, interval)
  const point = index === null ? undefined : points[index]

  useEffect(() => setIndex(null), [points])

  useEffect(() => {
    const target = place.current as HTMLDivElement
    const markerTimes = markers.map(({ time }) => new Date(time).getTime() / 1_000)
    const observer = new ResizeObserver(() => plot.current?.setSize({ width: target.clientWidth, height }))
    let isGone = false
    const draw = ({ default: library }: { default: typeof uPlot }) => {
      if (isGone) return
      setMissing(false)
      const look = plotOptions(library, columns, {
        onDraw(drawn) {
          drawLonePoints(drawn, columns)
          drawMarkers(drawn, markerTimes)
          setFlags(toFlags(drawn, markers, markerTimes))
        },
        onPoint: setIndex,
        onSelect: (from, until) => onZoom(new Date(from * 1_000), new Date(until * 1_000)),
      })
      const { x, positive, negative, low, high, rate } = columns
      const data: uPlot.AlignedData = [x, positive, negative, low, high, rate]
      plot.current = new library({ ...look, width: target.clientWidth, height }, data, target)
      observer.observe(target)
    }
    import('uplot').then(draw, () => isGone || setMissing(true))
    return () => {
      isGone = true
      observer.disconnect()
      plot.current?.destroy()
      plot.current = null
    }
  }, [points, markers, scheme])

  /** Puts the cursor on an interval, as the pointer would. */
  const walk = (event: KeyboardEvent) => {
    const last = points.length - 1
    const at = index ?? (event.key === 'ArrowLeft' ? points.length : -1)
    const target = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }[event.key]
    if (target === undefined) return
    event.preventDefault()
    const next = Math.min(Math.max(target, 0), last)
    setIndex(next)
    // While it is drawn again, there is none.
    plot.current?.setCursor({ left: plot.current.valToPos(columns.x[next] as number, 'x'), top: 10 })
  }

  return (
    <figure class="chart">
      {/* After an upgrade of the service, only the reloaded page knows the name of the file. */}
      {isMissing && <FailureNote failure={{ kind: 'offline' }} retry={() => location.reload()} />}
      <div class="flags">
        {flags.map(({ left, markers }) => (
          <a
            key={markers[0]?.anchor}
            class="flag cut"
            href={`#${markers.at(-1)?.anchor}`}
            onClick={() => onFlag(markers.at(-1)?.anchor as string)}
            style={{ left: `${left}px` }}
            title={markers
              .map(({ label, title, time }) => [label, title, formatMoment(time)].filter(Boolean).join(', '))
              .join('\n')}
          >
            {wordsOf(markers)}
          </a>
        ))}
      </div>
      <div
        class="plot"
        ref={place}
        role="slider"
        tabIndex={0}
        aria-label="Signals over time"
        aria-valuemin={0}
        aria-valuemax={points.length - 1}
        aria-valuenow={index ?? 0}
        aria-valuetext={point ? textOf(point, nameOf(point.start)) : 'Use the arrow keys to move over the chart'}
        onKeyDown={walk}
      />
      <figcaption class="reading">
        {point ? <Reading point={point} name={nameOf(point.start)} /> : <Legend />}
      </figcaption>
    </figure>
  )
}

function wordsOf(markers: Marker[]): string {
  if (markers.length < 2) return markers[0]?.label ?? ''
  return countOf(markers.length, markers.every(({ isChange }) => isChange) ? 'change' : 'event')
}

/** Puts those markers that are on the plot into flags from left to right. */
function toFlags({ bbox, ctx, valToPos }: uPlot, markers: Marker[], times: number[]): Flag[] {
  const flags: Flag[] = []
  const placed = markers
    .map((marker, index) => ({ markers: [marker], x: valToPos(times[index] as number, 'x') }))
    .filter(({ x }) => x >= 0 && x <= bbox.width / devicePixelRatio)
    .map(({ markers, x }) => ({ markers, left: Math.round(bbox.left / devicePixelRatio + x) }))
    .sort((a, b) => a.left - b.left)
  ctx.save()
  ctx.font = '11.25px system-ui, sans-serif'
  // As in the style sheet, with its padding.
  const widthOf = ({ markers }: Flag) => Math.min(ctx.measureText(wordsOf(markers)).width + 11, 105)
  const add = (flag: Flag): void => {
    const last = flags.at(-1)
    if (!last || flag.left - last.left >= (widthOf(last) + widthOf(flag)) / 2) return void flags.push(flag)
    flags.pop()
    add({ left: last.left, markers: [...last.markers, ...flag.markers] })
  }
  for (const flag of placed) add(flag)
  ctx.restore()
  return flags
}

const Legend = () => (
  <>
    <span class="key key-rate">positive rate with its interval</span>
    <span class="key key-positive">positive</span>
    <span class="key key-negative">negative</span>
  </>
)

function Reading({ point: { positive, negative }, name }: { point: Point; name: string }) {
  const rate = rateOf({ positive, negative })
  return (
    <>
      <strong>{name}</strong>
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
function textOf({ positive, negative }: Point, name: string): string {
  const rate = rateOf({ positive, negative })
  if (!rate) return `${name}: no signals`
  return `${name}: ${formatPercent(rate.value)} positive, of ${countOf(positive + negative, 'signal')}`
}

/** Changes with the reader's choice of light or dark, so that the chart is redrawn in the other colours. */
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
