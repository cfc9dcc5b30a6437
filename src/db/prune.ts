import type { Db } from './client.ts'

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
