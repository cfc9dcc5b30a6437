import type { Db } from '../src/db/client.ts'
import { engine } from './harness.ts'

/**
 * How many rows of each table were read so far, by scans of the whole table or by way of its indexes, after every
 * connection has reported what it did.
 */
export async function readRows(db: Db, by: 'scan' | 'index'): Promise<Map<string, number>> {
  const pauseSeconds = engine === 'postgres' ? 0.5 : 0
  const { connections } = db.load()
  await Promise.all(
    Array.from({ length: connections }, () => db.sql`select pg_sleep(${pauseSeconds}), pg_stat_force_next_flush()`),
  )
  await Promise.all(
    Array.from({ length: 4 }, () =>
      db.transaction((sql) => sql`select pg_sleep(${pauseSeconds}), pg_stat_force_next_flush()`),
    ),
  )
  const rows = await db.sql<{ name: string; scanned: number; found: number }>`
    select
      t.relname::text as name, t.seq_tup_read as scanned,
      (select coalesce(sum(i.idx_tup_read), 0)::bigint from pg_stat_user_indexes i where i.relid = t.relid) as found
    from pg_stat_user_tables t`
  return new Map(rows.map(({ name, scanned, found }) => [name, by === 'scan' ? scanned : found]))
}
