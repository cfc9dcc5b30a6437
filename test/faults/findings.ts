import type { Cluster } from './cluster.ts'
import type { Attempt } from './post.ts'

/** What a check found: figures to print, and what is not as it must be. */
export type Findings = { figures: string; problems: string[] }

export function compare(problems: string[], what: string, expected: unknown, found: unknown): void {
  if (!Bun.deepEquals(expected, found)) {
    problems.push(`${what}: expected ${JSON.stringify(expected)}, found ${JSON.stringify(found)}`)
  }
}

/** A fault that nobody noticed proves nothing. */
export function hit(problems: string[], what: string, number: number): void {
  if (number <= 0) problems.push(`the fault did not hit: no ${what}`)
}

export const endOf = ({ sentAt, ms }: Attempt): number => sentAt + ms

/** The attempts that were under way at that time or later. */
export const touched = ({ ledger }: Cluster, from: number): Attempt[] =>
  ledger.attempts.filter((attempt) => endOf(attempt) >= from)
