import { readConfig } from '../src/config.ts'
import type { Db, Sql } from '../src/db/client.ts'
import { openAny } from '../src/db/open.ts'

/** The benchmark's own connection to a database that it made: a server's, or the one inside a running service. */
export async function openOwnDatabase(settings: Record<string, string>): Promise<Db> {
  const options = { queryTimeoutMs: 0, maxConnections: 1, whenInUse: 'share' as const }
  return await openAny(readConfig({}, settings), options)
}

/** The same shape and indexes as `signals`, for what writes without counting. */
export const createCopies = async (db: Db): Promise<void> =>
  db.sql.script(`
    create table plain_signals (like signals including all);
    create table single_inserts (like signals including all);
  `)

/** Longer than a batch takes on a busy machine: what commits later would be counted in the next phase. */
const settleMs = 500

/** Spelled out, because the text of a statement must be constant. */
const counts = {
  signals: (sql: Sql) => sql<{ number: number }>`select count(*) as number from signals`,
  plain_signals: (sql: Sql) => sql<{ number: number }>`select count(*) as number from plain_signals`,
  single_inserts: (sql: Sql) => sql<{ number: number }>`select count(*) as number from single_inserts`,
  history_entries: (sql: Sql) => sql<{ number: number }>`select count(*) as number from history_entries`,
}

export type Table = keyof typeof counts

/**
 * Empties a table and flushes what earlier phases left, so that every phase starts alike. Returns the rows it starts
 * with: a history is not emptied, since the numbers that its prompts keep would be wrong.
 */
export async function startTable(db: Db, table: Table): Promise<number> {
  if (table === 'signals')
    await db.sql.script(
      'truncate signals, signal_usage, idempotency_keys, signal_watermarks, signal_counts, signal_commit_counts',
    )
  else if (table !== 'history_entries') await db.sql.script(`truncate ${table}`)
  await db.sql.script('checkpoint')
  return countRows(db, table)
}

const countRows = async ({ sql }: Db, table: Table): Promise<number> => (await counts[table](sql))[0]?.number ?? 0

/** The number of rows once no writer is left: the last requests of a load are written after it has gone. */
export async function countSettled(db: Db, table: Table): Promise<number> {
  for (let before = await countRows(db, table); ; ) {
    await Bun.sleep(settleMs)
    const now = await countRows(db, table)
    if (now === before) return now
    before = now
  }
}

/** Organisations whose count is not the number of their signals. There must be none. */
export const findMiscounted = (db: Db): Promise<{ organisation: number; used: number; recorded: number }[]> =>
  db.sql`
    with recorded as (select organisation_id, count(*) as number from signals group by organisation_id),
      counted as (select organisation_id, sum(used)::bigint as number from signal_usage group by organisation_id)
    select organisation_id as organisation, coalesce(c.number, 0) as used, coalesce(r.number, 0) as recorded
    from recorded r
    full join counted c using (organisation_id)
    where coalesce(c.number, 0) <> coalesce(r.number, 0)`
