import type { Db, Sql } from './client.ts'

/** Whether a commit of this user waits for a synchronous standby. */
export async function isStandbyAwaited(db: Db): Promise<boolean> {
  const query = async (sql: Sql) => {
    const [row] = await sql<{ waits: boolean }>`
      select exists (select from pg_stat_activity where wait_event = 'SyncRep') as waits`
    return row?.waits === true
  }
  // The waiting commit blocks either the connection for statements or the one for transactions; the other one answers.
  return Promise.any([query(db.sql), db.transaction(query)])
}
