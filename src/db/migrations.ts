import { hash } from 'node:crypto'
import type { Db, Sql } from './client.ts'
import { classifyError, isPostgresError } from './errors.ts'

/** A numbered file of `sql/`: forward only, never changed once released. */
export type Migration = { name: string; text: string }

/** Thrown when the database can be reached, but has a schema that this program cannot use. */
export class SchemaError extends Error {}

/** The advisory lock for migrating this database; any constant will do. */
const migrationLock = 7_226_001
const UNDEFINED_TABLE = '42P01'

type Applied = { version: number; sha256: string | null }

/** The migrations that the database has seen, in order; none for an empty one. */
async function readApplied(sql: Sql): Promise<Applied[]> {
  const [row] = await sql<{ present: boolean }>`
    select to_regclass('schema_migrations') is not null as present`
  return row?.present ? selectApplied(sql) : []
}

/** Fails without the table. As JSON, because the table of another program may lack the column. */
const selectApplied = (sql: Sql) =>
  sql<Applied>`
    select version, to_json(m) ->> 'sha256' as sha256 from schema_migrations m order by version`

/** The number of migrations that the database has seen; 0 for an empty one. */
export const readSchemaVersion = async (sql: Sql): Promise<number> => (await readApplied(sql)).at(-1)?.version ?? 0

/** The same of a database that this program can read: an older or a newer one, but not one of other migrations. */
export async function readKnownVersion(sql: Sql, migrations: Migration[]): Promise<number> {
  const applied = await readApplied(sql)
  rejectOthers(applied, migrations)
  return applied.length
}

export const hashOf = ({ text }: Migration): string => hash('sha256', text, 'hex')

/** Keeps what a database of this version holds. Nothing is migrated when it fails. */
export type BackUp = (db: Db, version: number) => Promise<void>

/**
 * Migrates the database to this program's schema, all or nothing. Concurrent migrations wait for each other. An embedded
 * database is backed up before.
 */
export async function migrate(
  db: Db,
  migrations: Migration[],
  backUp?: BackUp,
): Promise<{ applied: string[]; version: number }> {
  try {
    const found = backUp && db.isEmbedded ? await readKnownVersion(db.sql, migrations) : 0
    if (found > 0 && found < migrations.length) await backUp?.(db, found)
    const deadline = Number.POSITIVE_INFINITY
    const applied = await db.transaction((sql) => bringToSchema(sql, migrations), { deadline })
    return { applied, version: migrations.length }
  } catch (error) {
    if (classifyError(error) !== 'lock_timeout') throw error
    throw new Error('The tables are locked, perhaps by a backup. Nothing was migrated: try again later.')
  }
}

/** Migrates within the caller's transaction, and returns the names of the migrations that were missing. */
export async function bringToSchema(sql: Sql, migrations: Migration[]): Promise<string[]> {
  await sql`set local statement_timeout = 0`
  await sql`select pg_advisory_xact_lock(${migrationLock})`
  // A migration that waits for a table blocks every later statement on it, so it times out before it stops the replicas.
  await sql`set local lock_timeout = '2s'`
  const [server] = await sql<{ encoding: string }>`
    select current_setting('server_encoding') as encoding`
  if (server?.encoding !== 'UTF8') {
    throw new Error(`The database is encoded as ${server?.encoding}; create it with encoding UTF8.`)
  }
  const applied = await readApplied(sql)
  rejectUnknown(applied, migrations)
  const version = applied.length
  if (version === 0) {
    await sql`
      create table if not exists schema_migrations (
        version integer primary key,
        name text not null,
        sha256 text not null,
        applied_at timestamptz(3) not null default now()
      )`
  }
  const missing = migrations.slice(version)
  for (const [index, migration] of missing.entries()) {
    await sql.script(migration.text)
    await sql`
      insert into schema_migrations (version, name, sha256)
      values (${version + index + 1}, ${migration.name}, ${hashOf(migration)})`
  }
  return missing.map(({ name }) => name)
}

/**
 * Rejects a schema that is older than this program's, or not its own. A newer one does not stop a running service: during
 * an upgrade the replicas of two releases run side by side, and a migration keeps what the older release uses. One
 * statement, since probes of a busy embedded engine wait for each.
 */
export async function requireSchema(sql: Sql, migrations: Migration[], isRunning = false): Promise<void> {
  const applied = await selectApplied(sql).catch((error): Applied[] => {
    if (isPostgresError(error) && error.code === UNDEFINED_TABLE) return []
    throw error
  })
  if (!isRunning) rejectUnknown(applied, migrations)
  if (applied.length >= migrations.length) return
  throw new SchemaError(
    `The database has schema version ${applied.length}, this program needs ${migrations.length}: run "prompt-signals migrate" first.`,
  )
}

function rejectUnknown(applied: Applied[], migrations: Migration[]): void {
  rejectOthers(applied, migrations)
  if (applied.length > migrations.length) {
    throw new SchemaError(
      `The database has schema version ${applied.length}, newer than the ${migrations.length} this program knows: use a newer prompt-signals.`,
    )
  }
}

function rejectOthers(applied: Applied[], migrations: Migration[]): void {
  const other = migrations.find((one, index) => applied[index] && applied[index].sha256 !== hashOf(one))
  if (!other) return
  throw new SchemaError(
    `The database was made with another ${other.name} than this program's: use the prompt-signals that made it, or an empty database.`,
  )
}
