import type { Db, Sql } from './client.ts'

/** Whether a commit of this user waits for a synchronous standby. */
export async function isStandbyAwaited(db: Db): Promise<boolean> {
  const ask = async (sql: Sql) => {
    const [row] = await sql<{ waits: boolean }>`
      select exists (select from pg_stat_activity where wait_event = 'SyncRep') as waits`
    return row?.waits === true
  }
  // The commit keeps one kind of connection busy, those of statements or those of transactions; the other answers.
  return Promise.any([ask(db.sql), db.transaction(ask)])
}
