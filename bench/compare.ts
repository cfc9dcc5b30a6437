import type { Ground } from './ground.ts'
import type { Row } from './report.ts'

/** How long to measure this time; a warm-up of no seconds is none. */
export type Turn = { warmUpSeconds: number; seconds: number }

type Ratio<Name> = (of: Name, to: Name, pick?: (row: Row) => number) => number

/**
 * Measures several things by turns, in short rounds, as a machine's speed drifts from one second to the next. A ratio is
 * taken within each round; what is told is the one in the middle.
 */
export async function compare<Name extends string>(
  { plan, report }: Ground,
  works: Record<Name, (turn: Turn) => Promise<Row>>,
): Promise<Ratio<Name>> {
  const names = Object.keys(works) as Name[]
  const rounds: Record<Name, Row>[] = []
  for (let round = 0; round < plan.rounds; round += 1) {
    const turn = { warmUpSeconds: round === 0 ? plan.warmUpSeconds : 0, seconds: plan.roundSeconds }
    const rows = {} as Record<Name, Row>
    for (const name of names) rows[name] = await works[name](turn)
    rounds.push(rows)
  }
  for (const name of names) report.rows.push(summarise(rounds.map((rows) => rows[name])))
  return (of, to, pick = (row) => row.requestsPerSecond) =>
    middle(rounds.map((rows) => pick(rows[of]) / pick(rows[to])))
}

export const middle = (numbers: number[]): number => numbers.toSorted((a, b) => a - b)[numbers.length >> 1] as number

/** The round in the middle, with the errors of all. */
function summarise(rows: Row[]): Row {
  const sorted = rows.toSorted((a, b) => a.requestsPerSecond - b.requestsPerSecond)
  const errors = rows.reduce((sum, row) => sum + row.errors, 0)
  return { ...(sorted[rows.length >> 1] as Row), errors }
}
