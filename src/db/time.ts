import type { Clock } from '../clock.ts'
import type { Sql } from './client.ts'

/** With a larger difference, one of the two clocks is wrong. */
const maxSkewSeconds = 5 * 60

export class ClockSkewError extends Error {
  constructor(readonly seconds: number) {
    super(`the clock of this process and that of the database differ by ${Math.abs(seconds)} s`)
  }
}

/**
 * Reads the database's time, by which expired rows are deleted: it is the same for all replicas. Throws a ClockSkewError
 * when the clock of this process, which dates the rows, does not agree.
 */
export async function readTrustedTime(sql: Sql, clock: Clock, onSkew: (seconds: number) => void): Promise<Date> {
  const [row] = await sql<{ now: Date }>`select clock_timestamp() as now`
  const { now } = row as { now: Date }
  const seconds = Math.round((clock.now().getTime() - now.getTime()) / 1_000)
  onSkew(seconds)
  if (Math.abs(seconds) > maxSkewSeconds) throw new ClockSkewError(seconds)
  return now
}
