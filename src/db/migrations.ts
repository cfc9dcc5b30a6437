import type { Db, Sql } from './client.ts'
import { classifyError } from './errors.ts'

/** A numbered file of `sql/`: forward only, never changed once released. */
export type Migration = { name: string; text: string }

/** Thrown when the database can be reached, but has a schema that this program cannot use. */
export class SchemaError extends Error {}

/** The advisory lock for migrating this database; any constant will do. */
const migrationLock = 7_226_001

/** The number of migrations that the database has seen; 0 for an empty one. */
export async function readSchemaVersion(sql: Sql): Promise<number> {
  const [row] = await sql<{ present: boolean }>`
    select to_regclass('schema_migrations') is not null as present`
  if (!row?.present) return 0
  const [newest] = await sql<{ version: number }>`
    select coalesce(max(version), 0)::int as version from schema_migrations`
  return newest?.version ?? 0
}

/** Migrates the database to this program's schema, all or nothing. Concurrent migrations wait for each other. */
export async function migrate(db: Db, migrations: Migration[]): Promise<{ applied: string[]; version: number }> {
  try {
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
  const version = await readSchemaVersion(sql)
  rejectNewer(version, migrations)
  if (version === 0) {
    await sql`
      create table if not exists schema_migrations (
        version integer primary key,
        name text not null,
        applied_at timestamptz(3) not null default now()
      )`
  }
  const missing = migrations.slice(version)
  for (const [index, { name, text }] of missing.entries()) {
    await sql.script(text)
    await sql`insert into schema_migrations (version, name) values (${version + index + 1}, ${name})`
  }
  return missing.map(({ name }) => name)
}

/**
 * Rejects a schema that is older than this program's, or newer. A newer one does not stop a running service: during an
 * upgrade the replicas of two releases run side by side, and a migration keeps what the older release uses.
 */
export async function requireSchema(sql: Sql, migrations: Migration[], isRunning = false): Promise<void> {
  const version = await readSchemaVersion(sql)
  if (!isRunning) rejectNewer(version, migrations)
  if (version >= migrations.length) return
  throw new SchemaError(
    `The database has schema version ${version}, this program needs ${migrations.length}: run "prompt-signals migrate" first.`,
  )
}

function rejectNewer(version: number, migrations: Migration[]): void {
  if (version > migrations.length) {
    throw new SchemaError(
      `The database has schema version ${version}, newer than the ${migrations.length} this program knows: use a newer prompt-signals.`,
    )
  }
}
