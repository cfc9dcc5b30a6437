type Day = { positive: number; negative: number }

const [width, height, edge] = [120, 28, 2]

/** The rate of each day as a line from 0 to 100 %, with gaps where there was nothing. The figures stand beside it. */
export function Sparkline({ days }: { days: Day[] }) {
  const step = (width - 2 * edge) / Math.max(1, days.length - 1)
  const runs: [number, number][][] = [[]]
  days.forEach(({ positive, negative }, index) => {
    const total = positive + negative
    if (total === 0) runs.push([])
    else runs.at(-1)?.push([edge + index * step, edge + (1 - positive / total) * (height - 2 * edge)])
  })
  return (
    <svg class="sparkline" viewBox={`0 0 ${width} ${height}`} width={width} height={height} aria-hidden="true">
      <line class="sparkline-half" x1={0} x2={width} y1={height / 2} y2={height / 2} />
      {runs
        .filter((run) => run.length > 0)
        .map((run) =>
          run.length === 1 ? (
            <circle key={run[0]?.[0]} class="sparkline-dot" cx={run[0]?.[0]} cy={run[0]?.[1]} r={1.5} />
          ) : (
            <polyline
              key={run[0]?.[0]}
              class="sparkline-line"
              points={run.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(' ')}
            />
          ),
        )}
    </svg>
  )
}
