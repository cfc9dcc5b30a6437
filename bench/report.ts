// What was measured, as a table for a person and as JSON for a comparison with another day.

export type Row = {
  name: string
  requestsPerSecond: number
  p50Ms: number
  p99Ms: number
  /** Answers other than the expected one, and requests without any. */
  errors: number
  /** The memory of all processes of the service together; null where it is none of ours. */
  residentMb: number | null
}

export type Target = { name: string; value: number; atLeast?: number; below?: number; atMost?: number }

export type Report = {
  rows: Row[]
  targets: Target[]
  /** What makes the run worthless: wrong counts. */
  problems: string[]
}

export const createReport = (): Report => ({ rows: [], targets: [], problems: [] })

export const isMet = ({ value, atLeast = -Infinity, below = Infinity, atMost = Infinity }: Target): boolean =>
  value >= atLeast && value < below && value <= atMost

export const isSound = ({ rows, problems }: Report): boolean =>
  problems.length === 0 && rows.every(({ errors }) => errors === 0)

export function printReport({ rows, targets, problems }: Report): void {
  const heading = ['', 'requests/s', 'p50 ms', 'p99 ms', 'errors', 'memory MB']
  printTable([heading, ...rows.map(cellsOf)])
  console.log()
  printTable([
    ['', 'measured', 'target', ''],
    ...targets.map((target) => [
      target.name,
      target.value.toFixed(2),
      goalOf(target),
      isMet(target) ? 'met' : 'MISSED',
    ]),
  ])
  for (const problem of problems) console.error(`WRONG: ${problem}`)
}

const cellsOf = ({ name, requestsPerSecond, p50Ms, p99Ms, errors, residentMb }: Row): string[] => [
  name,
  Math.round(requestsPerSecond).toLocaleString('en-GB'),
  p50Ms.toFixed(1),
  p99Ms.toFixed(1),
  String(errors),
  residentMb === null ? '' : residentMb.toFixed(0),
]

function goalOf({ atLeast, below, atMost }: Target): string {
  if (atLeast !== undefined) return `≥ ${atLeast}`
  return below === undefined ? `≤ ${atMost}` : `< ${below}`
}

function printTable(lines: string[][]): void {
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0))) ?? []
  for (const line of lines) {
    const cells = line.map((cell, column) => {
      const width = widths[column] ?? 0
      return column === 0 ? cell.padEnd(width) : cell.padStart(width)
    })
    console.log(cells.join('  ').trimEnd())
  }
}
