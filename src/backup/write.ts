import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { readSchemaVersion } from '../db/migrations.ts'
import { formatHeader, formatLine } from './format.ts'
import { beginSnapshot, estimateRows, listTables, readRows, selectSequences } from './store.ts'

/** A service that backs up before it migrates gives its transactions seconds. */
const unhurried = { deadline: Number.POSITIVE_INFINITY }

/** Writes a snapshot of the whole database, and returns the number of rows. `expected` is an estimate. */
export function writeBackup(
  db: Db,
  clock: Clock,
  madeBy: string,
  write: (text: string) => Promise<void>,
  onProgress: (rows: number, expected: number | null) => void = () => {},
): Promise<number> {
  return db.transaction(async (sql) => {
    await beginSnapshot(sql)
    const version = await readSchemaVersion(sql)
    if (version === 0) throw new Error('There is nothing to back up: the database is empty.')
    await write(formatHeader(version, madeBy, clock.now()))
    const expected = await estimateRows(sql)
    let rows = 0
    for (const table of await listTables(sql)) {
      await write(formatLine({ table: table.name, columns: table.columns.map(({ name }) => name) }))
      for await (const lines of readRows(sql, table)) {
        await write(`${lines.join('\n')}\n`)
        rows += lines.length
        onProgress(rows, expected)
      }
    }
    // Sequences are not part of the snapshot: read after the rows, they cannot be behind them.
    for (const { name, value } of await selectSequences(sql)) await write(formatLine({ sequence: name, value }))
    await write(formatLine({ end: rows }))
    return rows
  }, unhurried)
}
