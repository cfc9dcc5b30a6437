import type { Clock } from '../clock.ts'
import type { Db, Sql } from './client.ts'

/** Rows per statement: a larger one would hold its locks for too long. */
const batchSize = 5_000

/** Deletes the rows of a table that are older than `before`, except those that another replica is deleting. */
export async function pruneTable({ sql }: Db, table: string, timeColumn: string, before: Date): Promise<void> {
  const statement = `
    delete from ${table}
    where ctid = any(array(
      select ctid from ${table} where ${timeColumn} < $1::timestamptz
      order by ${timeColumn} limit ${batchSize} for update skip locked
    ))
    returning 1`
  while ((await sql.dynamic(statement, [before.toISOString()])).length === batchSize);
}

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
