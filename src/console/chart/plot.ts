import type uPlot from 'uplot'
import { formatNumber, formatPercent } from '../parts/format.ts'
import { axisTimes } from './axis_times.ts'
import { type Columns, niceCeiling } from './points.ts'

/** The rate has the upper part of the plot, the counts the lower one. */
const ratePart = 0.56
const countPart = 0.36

type Events = {
  onDraw(plot: uPlot): void
  onPoint(index: number | null): void
  onSelect(from: number, until: number): void
}

/** How the plot looks and what it shows. Its colours are those of the style sheet at the moment. */
export function plotOptions(
  library: typeof uPlot,
  columns: Columns,
  { width, height }: { width: number; height: number },
  events: Events,
): uPlot.Options {
  const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()
  const [ink, line, positive, negative] = [colour('quiet'), colour('line'), colour('positive'), colour('negative')]
  const counts = [...columns.positive, ...columns.negative].map((count) => Math.abs(count ?? 0))
  const most = niceCeiling(Math.max(...counts, 1))
  const axis = { stroke: ink, font: '12px system-ui, sans-serif', ticks: { show: false } }
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
  return {
    width,
    height,
    padding: [8, 0, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: true, y: false, setScale: false }, points: { size: 7 }, y: false },
    select: { show: true, left: 0, top: 0, width: 0, height: 0 },
    scales: {
      // The first and the last interval are shown whole.
      x: { time: true, range: (_, first, last) => [first - halfOf(columns.x), last + halfOf(columns.x)] },
      rate: { range: [1 - 1 / ratePart, 1] },
      count: { range: [-1.1 * most, -1.1 * most + (2.2 * most) / countPart] },
    },
    axes: [
      {
        ...axis,
        size: 32,
        grid: { show: false },
        space: 70,
        values: (_, splits, __, ___, step) => axisTimes(splits, step),
      },
      {
        ...axis,
        scale: 'rate',
        size: 52,
        grid: { stroke: line, width: 1 },
        splits: () => [0, 0.25, 0.5, 0.75, 1],
        values: (_, splits) => splits.map((share) => (share === 0.25 || share === 0.75 ? '' : formatPercent(share))),
      },
      {
        ...axis,
        scale: 'count',
        side: 1,
        size: 52,
        grid: { show: false },
        splits: () => [-most, 0, most],
        values: (_, splits) => splits.map((count) => formatNumber(Math.abs(count))),
      },
    ],
    series: [
      {},
      bars(positive),
      bars(negative),
      { scale: 'rate', stroke: 'transparent', width: 0, points: { show: false } },
      { scale: 'rate', stroke: 'transparent', width: 0, points: { show: false } },
      { scale: 'rate', stroke: positive, width: 2, points: { show: isSparse, size: 4, fill: positive } },
    ],
    bands: [{ series: [4, 3], fill: colour('positive-soft') }],
    hooks: {
      draw: [(plot) => events.onDraw(plot)],
      setCursor: [(plot) => events.onPoint(plot.cursor.idx ?? null)],
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

/** Half of an interval, in seconds. */
const halfOf = (x: number[]): number => ((x[1] ?? 0) - (x[0] ?? 0)) / 2 || 43_200

/** Draws the changes as dashed lines from top to bottom, and the line that the counts stand on. */
export function drawMarkers(plot: uPlot, times: number[]): void {
  const { ctx, bbox } = plot
  const right = bbox.left + bbox.width
  const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()
  const draw = (stroke: string, dash: number[], lines: [x1: number, y1: number, x2: number, y2: number][]) => {
    ctx.strokeStyle = stroke
    ctx.setLineDash(dash.map((length) => length * devicePixelRatio))
    ctx.beginPath()
    for (const [x1, y1, x2, y2] of lines) {
      ctx.moveTo(x1, y1)
      ctx.lineTo(x2, y2)
    }
    ctx.stroke()
  }
  ctx.save()
  ctx.lineWidth = devicePixelRatio
  const zero = Math.round(plot.valToPos(0, 'count', true))
  draw(colour('line'), [], [[bbox.left, zero, right, zero]])
  const places = times.map((time) => Math.round(plot.valToPos(time, 'x', true)))
  const inside = places.filter((x) => x >= bbox.left && x <= right)
  draw(
    colour('field'),
    [3, 3],
    inside.map((x) => [x, bbox.top, x, bbox.top + bbox.height]),
  )
  ctx.restore()
}
