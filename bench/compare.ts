import type { Plan, Round } from './plan.ts'
import type { Report, Row } from './report.ts'

type Ratio<Name> = (of: Name, to: Name, pick?: (row: Row) => number) => number

/**
 * Measures several things in short alternating rounds, because a machine's speed drifts from one second to the next.
 * A ratio is taken within each round, and the median of them is reported.
 */
export async function compare<Name extends string>(
  { plan, report }: { plan: Plan; report: Report },
  measurements: Record<Name, (round: Round) => Promise<Row>>,
): Promise<Ratio<Name>> {
  const names = Object.keys(measurements) as Name[]
  const rounds: Record<Name, Row>[] = []
  for (let index = 0; index < plan.rounds; index += 1) {
    const round = { warmUpSeconds: index === 0 ? plan.warmUpSeconds : 0, seconds: plan.roundSeconds }
    const rows = {} as Record<Name, Row>
    for (const name of names) rows[name] = await measurements[name](round)
    rounds.push(rows)
  }
  for (const name of names) report.rows.push(summarise(rounds.map((rows) => rows[name])))
  return (of, to, pick = (row) => row.requestsPerSecond) =>
    median(rounds.map((rows) => pick(rows[of]) / pick(rows[to])))
}

export const median = (numbers: number[]): number => numbers.toSorted((a, b) => a - b)[numbers.length >> 1] as number

/** The median round, with the errors of all rounds. */
function summarise(rows: Row[]): Row {
  const sorted = rows.toSorted((a, b) => a.requestsPerSecond - b.requestsPerSecond)
  const errors = rows.reduce((sum, row) => sum + row.errors, 0)
  return { ...(sorted[rows.length >> 1] as Row), errors }
}
