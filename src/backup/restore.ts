import type { Db, Sql } from '../db/client.ts'
import { classifyError, isPostgresError } from '../db/errors.ts'
import { bringToSchema, type Migration, readSchemaVersion } from '../db/migrations.ts'
import { damaged, isRow, isShallow, type Part, parseHeader, parsePart } from './format.ts'
import {
  analyse,
  beginLoad,
  checkConstraints,
  disableEndpoints,
  findFilledTable,
  insertRows,
  listTables,
  setSequence,
  type Table,
} from './store.ts'

const batchRows = 1_000
const batchCharacters = 4_000_000

/** Thrown when the backup does not fit the schema of this database. Damage may be the reason. */
class MisfitError extends Error {}

/** Fills an empty database, all or nothing. A backup of an older schema is loaded into that one and then migrated. */
export function restoreBackup(
  db: Db,
  migrations: Migration[],
  lines: AsyncIterable<string>,
  onProgress: (rows: number) => void = () => {},
): Promise<{ rows: number; version: number; disabled: number }> {
  const reader = lines[Symbol.asyncIterator]()
  return db.transaction(async (sql) => {
    try {
      const schemaVersion = parseHeader((await reader.next()).value)
      await beginLoad(sql)
      const tables = await prepareTables(sql, migrations, schemaVersion)
      const rows = await load(sql, tables, reader, onProgress)
      await analyse(sql, tables)
      await bringToSchema(sql, migrations)
      return { rows, version: migrations.length, disabled: await disableEndpoints(sql) }
    } catch (error) {
      // The reader verifies the checksum at the end of the file, which tells damage from a misfit.
      if (error instanceof MisfitError || isPostgresError(error)) {
        while (!(await reader.next()).done);
      }
      throw error
    }
  })
}

async function prepareTables(sql: Sql, migrations: Migration[], backupVersion: number): Promise<Table[]> {
  if (backupVersion > migrations.length) {
    throw new MisfitError(
      `The backup has schema version ${backupVersion}, newer than the ${migrations.length} this program knows: use a newer prompt-signals.`,
    )
  }
  const version = await readSchemaVersion(sql)
  if (version > backupVersion) {
    throw new MisfitError(
      `The backup has schema version ${backupVersion}, the database ${version}: restore into a new, empty database.`,
    )
  }
  await bringToSchema(sql, migrations.slice(0, backupVersion))
  const tables = await listTables(sql)
  const filled = await findFilledTable(sql, tables)
  if (filled) throw new Error(`The database is in use: its table ${filled} has rows. Restore into an empty one.`)
  return tables
}

async function load(
  sql: Sql,
  tables: Table[],
  reader: AsyncIterator<string>,
  onProgress: (rows: number) => void,
): Promise<number> {
  const missing = new Map(tables.map((table) => [table.name, table]))
  let table: Table | undefined
  let batch: string[] = []
  let characters = 0
  let rows = 0
  let isComplete = false

  async function flush(): Promise<void> {
    if (batch.length === 0) return
    if (!table) throw damaged()
    await insertRows(sql, table, batch).catch(throwDamaged)
    rows += batch.length
    batch = []
    characters = 0
    onProgress(rows)
  }

  async function apply(part: Part): Promise<void> {
    if ('table' in part) {
      table = missing.get(part.table)
      if (!table || !hasColumns(table, part.columns)) {
        throw new MisfitError(`The backup does not fit: this schema has no table ${part.table} with the same columns.`)
      }
      missing.delete(part.table)
    } else if ('sequence' in part) await setSequence(sql, part.sequence, part.value)
    else isComplete = part.end === rows && missing.size === 0
  }

  // A `for await` would close the reader on an error, before the rest is verified.
  for (let next = await reader.next(); !next.done; next = await reader.next()) {
    const line = next.value
    if (isComplete) throw damaged()
    if (isRow(line)) {
      if (table && !isShallow(line, table.columns)) throw damaged()
      batch.push(line)
      characters += line.length
      if (batch.length >= batchRows || characters >= batchCharacters) await flush()
    } else {
      await flush()
      await apply(parsePart(line))
    }
  }
  if (!isComplete) throw damaged()
  await checkConstraints(sql).catch(throwDamaged)
  return rows
}

/** What the schema does not take is no row of a backup. */
function throwDamaged(error: unknown): never {
  throw classifyError(error) === 'bad_row' ? damaged() : error
}

const hasColumns = (table: Table, names: string[]): boolean =>
  JSON.stringify(table.columns.map(({ name }) => name)) === JSON.stringify(names)
