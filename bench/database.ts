import { readConfig } from '../src/config.ts'
import type { Db, Sql } from '../src/db/client.ts'
import { openAny } from '../src/db/open.ts'
import { migrations } from '../src/platform.ts'

/** The benchmark's own look at a database that it has made: a server's, or the one inside a running service. */
export async function openOwnDatabase(settings: Record<string, string>): Promise<Db> {
  const options = { migrations, queryTimeoutMs: 0, maxConnections: 1, whenInUse: 'share' as const }
  return (await openAny(readConfig({}, settings), options)).db
}

/** The same shape and indexes as `signals`, for what writes without counting. */
export const createCopies = async (db: Db): Promise<void> =>
  db.sql.script(`
    create table plain_signals (like signals including all);
    create table single_inserts (like signals including all);
  `)

/** Longer than a batch takes on a busy machine: what comes later would be counted to the next phase. */
const settleMs = 500

/** Spelled out, because the text of a statement must be constant. */
const counts = {
  signals: (sql: Sql) => sql<{ number: number }>`select count(*) as number from signals`,
  plain_signals: (sql: Sql) => sql<{ number: number }>`select count(*) as number from plain_signals`,
  single_inserts: (sql: Sql) => sql<{ number: number }>`select count(*) as number from single_inserts`,
}

export type Table = keyof typeof counts

/** Empties a table and writes out what earlier phases left, so that every phase starts alike. */
export async function startAfresh(db: Db, table: Table): Promise<void> {
  await db.sql.script(`truncate ${table === 'signals' ? 'signals, signal_usage' : table}`)
  await db.sql.script('checkpoint')
}

/** The number of rows once no writer is left: the last requests of a load are written after it has gone. */
export async function countSettled({ sql }: Db, table: Table): Promise<number> {
  const count = async () => (await counts[table](sql))[0]?.number ?? 0
  for (let before = await count(); ; ) {
    await Bun.sleep(settleMs)
    const now = await count()
    if (now === before) return now
    before = now
  }
}

/** Organisations whose counter is not the number of their signals. There must be none. */
export const findMiscounted = (db: Db): Promise<{ organisation: number; used: number; recorded: number }[]> =>
  db.sql`
    with recorded as (select organisation_id, count(*) as number from signals group by organisation_id),
      counted as (select organisation_id, sum(used)::bigint as number from signal_usage group by organisation_id)
    select organisation_id as organisation, coalesce(c.number, 0) as used, coalesce(r.number, 0) as recorded
    from recorded r
    full join counted c using (organisation_id)
    where coalesce(c.number, 0) <> coalesce(r.number, 0)`
