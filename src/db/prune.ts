import type { Db } from './client.ts'

const batchSize = 5_000

/** Deletes the rows of a table that are older than `before`, in batches that hold no lock for long. */
export async function pruneRows(db: Db, table: string, timeColumn: string, before: Date): Promise<void> {
  let deleted = batchSize
  while (deleted === batchSize) {
    const rows = await db.sql.dynamic(
      `delete from ${table}
      where ctid = any (array(
        select ctid from ${table} where ${timeColumn} < $1::timestamptz
        order by ${timeColumn} limit ${batchSize} for update skip locked
      ))
      returning 1`,
      [before.toISOString()],
    )
    deleted = rows.length
  }
}
