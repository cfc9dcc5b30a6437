import type { Sql } from '../db/client.ts'

/** Erases a signal, also from the counts; false when there is no such signal. */
export async function eraseSignal(sql: Sql, promptId: number, signalId: number): Promise<boolean> {
  const [row] = await sql<{ erased: number }>`
    select erase_signals(${promptId}, array[${String(signalId)}::text::bigint]) as erased`
  return row?.erased === 1
}

/** Erases the oldest of a prompt's signals from before a time: how many it found, and how many of them it erased itself. */
export async function eraseBefore(
  sql: Sql,
  promptId: number,
  before: Date,
  maxRows: number,
): Promise<{ found: number; erased: number }> {
  const [row] = await sql<{ found: number; erased: number }>`
    select found_rows as found, erased_rows as erased from erase_signals_before(${promptId}, ${before}, ${maxRows})`
  return row ?? { found: 0, erased: 0 }
}

/** Whether this transaction is the only one that carries out retentions, on all replicas. */
export async function claimRetention(sql: Sql): Promise<boolean> {
  const [row] = await sql<{ isOnly: boolean }>`select pg_try_advisory_xact_lock(5168, 0) as "isOnly"`
  return row?.isOnly ?? false
}
