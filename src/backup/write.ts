import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { readSchemaVersion } from '../db/migrations.ts'
import { formatHead, formatPart } from './format.ts'
import { beginSnapshot, readRows, selectSequences } from './store.ts'
import { listTables } from './tables.ts'

/** Writes out everything in the database as it is at one moment; the number of rows. */
export function writeBackup(
  db: Db,
  clock: Clock,
  madeBy: string,
  write: (text: string) => Promise<void>,
): Promise<number> {
  return db.transaction(async (sql) => {
    await beginSnapshot(sql)
    const version = await readSchemaVersion(sql)
    if (version === 0) throw new Error('There is nothing to back up: the database is empty.')
    await write(formatHead(version, madeBy, clock.now()))
    let rows = 0
    for (const table of await listTables(sql)) {
      await write(formatPart({ table: table.name, columns: table.columns.map(({ name }) => name) }))
      for await (const lines of readRows(sql, table)) {
        await write(`${lines.join('\n')}\n`)
        rows += lines.length
      }
    }
    // Last: a sequence is read as it is now, and must not be behind the rows.
    for (const { name, value } of await selectSequences(sql)) await write(formatPart({ sequence: name, value }))
    await write(formatPart({ end: rows }))
    return rows
  })
}
