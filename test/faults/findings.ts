// What is found by a check, and how it is put.
import type { Attempt } from './post.ts'
import type { Scene } from './scene.ts'

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

export const endOf = ({ askedAt, ms }: Attempt): number => askedAt + ms

/** Those that were under way at some time from then on. */
export const touched = ({ ledger }: Scene, from: number): Attempt[] =>
  ledger.attempts.filter((attempt) => endOf(attempt) >= from)
