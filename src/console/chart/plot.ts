import type uPlot from 'uplot'
import { formatNumber, formatPercent, locale } from '../parts/format.ts'
import type { Columns } from './points.ts'

/** The rate has the upper part of the plot, the counts the lower one. */
const ratePart = 0.56
const countPart = 0.36

/** A colour of the style sheet as it is at the moment, in light or dark: the bundler makes plain colours of both. */
const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()

type Events = {
  onDraw(plot: uPlot): void
  onPoint(index: number | null): void
  onSelect(from: number, until: number): void
}

type Look = Omit<uPlot.Options, 'width' | 'height'>

/** How the plot looks and what it shows. */
export function plotOptions(library: typeof uPlot, columns: Columns, events: Events): Look {
  const positive = colour('positive')
  const mostOf = (counts: (number | null)[]) => Math.max(...counts.map((count) => Math.abs(count ?? 0)), 1)
  const [top, bottom] = [mostOf(columns.positive), mostOf(columns.negative)]
  const axis = { stroke: colour('quiet'), font: '12px system-ui, sans-serif', ticks: { show: false } }
  const isSparse = columns.x.length <= 60
  const paths = library.paths.bars?.({ size: [0.8, 72] })
  const bars = (fill: string): uPlot.Series => ({
    scale: 'count',
    fill,
    stroke: fill,
    width: 0,
    points: { show: false },
    ...(paths ? { paths } : {}),
  })
  const edge = { scale: 'rate', stroke: 'transparent', width: 0, points: { show: false } }
  return {
    padding: [8, 0, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: true, y: false, setScale: false }, points: { size: 7 }, y: false },
    scales: {
      // The first and the last interval are shown whole.
      x: { time: true, range: () => [columns.from, columns.until] },
      rate: { range: [1 - 1 / ratePart, 1] },
      count: { range: [-bottom, -bottom + (top + bottom) / countPart] },
    },
    axes: [
      { ...axis, size: 32, grid: { show: false }, space: 70, values: (_, times, _1, _2, step) => timesOf(times, step) },
      {
        ...axis,
        scale: 'rate',
        size: 52,
        grid: { stroke: colour('line'), width: 1 },
        splits: () => [0, 0.25, 0.5, 0.75, 1],
        values: (_, splits) => splits.map((share) => (share === 0.25 || share === 0.75 ? '' : formatPercent(share))),
      },
      {
        ...axis,
        scale: 'count',
        side: 1,
        size: 52,
        grid: { show: false },
        splits: () => [-bottom, 0, top],
        values: (_, splits) => splits.map((count) => formatNumber(Math.abs(count))),
      },
    ],
    series: [
      {},
      bars(positive),
      bars(colour('negative')),
      edge,
      edge,
      { scale: 'rate', stroke: positive, width: 2, points: { show: isSparse, size: 4, fill: positive } },
    ],
    bands: [{ series: [4, 3], fill: colour('positive-soft') }],
    hooks: {
      draw: [(plot) => events.onDraw(plot)],
      // A new plot reports its cursor too, which no pointer has moved yet.
      setCursor: [(plot) => plot.cursor.event && events.onPoint(plot.cursor.idx ?? null)],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select
          if (width < 8) return
          events.onSelect(plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x'))
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
        },
      ],
    },
  }
}

const daySeconds = 86_400
const hour = new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit' })
const day = new Intl.DateTimeFormat(locale, { day: 'numeric', month: 'short' })
const month = new Intl.DateTimeFormat(locale, { month: 'short', year: 'numeric' })

/** The words below the axis of time. The step between them says how exact they must be. */
const timesOf = (seconds: number[], step: number): string[] =>
  seconds.map((one) => {
    const time = new Date(one * 1_000)
    if (step >= 28 * daySeconds) return month.format(time)
    const isMidnight = time.getHours() === 0 && time.getMinutes() === 0
    return step >= daySeconds || isMidnight ? day.format(time) : hour.format(time)
  })

/** Draws the intervals of the points that stand alone: a band needs two neighbours. */
export function drawLonePoints(plot: uPlot, { x, low, high }: Columns): void {
  const { ctx } = plot
  const width = 8 * devicePixelRatio
  ctx.save()
  ctx.fillStyle = colour('positive-soft')
  x.forEach((time, index) => {
    const [from, until] = [low[index], high[index]]
    if (typeof from !== 'number' || typeof until !== 'number') return
    if (typeof low[index - 1] === 'number' || typeof low[index + 1] === 'number') return
    const [left, top] = [plot.valToPos(time, 'x', true) - width / 2, plot.valToPos(until, 'rate', true)]
    ctx.fillRect(left, top, width, plot.valToPos(from, 'rate', true) - top)
  })
  ctx.restore()
}

/** Draws the line that the counts stand on, and the changes as dashed lines from top to bottom. */
export function drawMarkers(plot: uPlot, times: number[]): void {
  const { ctx, bbox } = plot
  ctx.save()
  ctx.lineWidth = devicePixelRatio
  ctx.strokeStyle = colour('line')
  ctx.stroke(new Path2D(`M${bbox.left} ${Math.round(plot.valToPos(0, 'count', true))}h${bbox.width}`))
  ctx.strokeStyle = colour('field')
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio])
  for (const time of times) {
    const x = Math.round(plot.valToPos(time, 'x', true))
    const isInside = x >= bbox.left && x <= bbox.left + bbox.width
    if (isInside) ctx.stroke(new Path2D(`M${x} ${bbox.top}v${bbox.height}`))
  }
  ctx.restore()
}
