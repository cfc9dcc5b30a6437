import type { Db, Sql } from './client.ts'
import { faultOf, isAnswer } from './faults.ts'

/** A numbered file of `sql/`: forward only, never changed once released. */
export type Migration = { name: string; text: string }

/** The database is there, but not of a schema that this program can use. */
export class SchemaError extends Error {}

/** Any constant does, as long as every program that migrates this database takes the same lock. */
const migrationLock = 7_226_001

/** The number of migrations that the database has seen; 0 for an empty one. */
export async function readSchemaVersion(sql: Sql): Promise<number> {
  const [row] = await sql<{ present: boolean }>`
    select to_regclass('schema_migrations') is not null as present`
  return row?.present ? readNewest(sql) : 0
}

async function readNewest(sql: Sql): Promise<number> {
  const [newest] = await sql<{ version: number }>`
    select coalesce(max(version), 0)::int as version from schema_migrations`
  return newest?.version ?? 0
}

/** Brings the database to this program's schema, all or nothing, whoever else tries it at the same time. */
export async function migrate(db: Db, migrations: Migration[]): Promise<{ applied: string[]; version: number }> {
  try {
    return await db.transaction((sql) => bringToSchema(sql, migrations))
  } catch (error) {
    if (faultOf(error) !== 'busy') throw error
    throw new Error('The tables are held by others, perhaps by a backup. Nothing was migrated: try again later.')
  }
}

/** The same, as a part of the caller's transaction. */
export async function bringToSchema(
  sql: Sql,
  migrations: Migration[],
): Promise<{ applied: string[]; version: number }> {
  await sql`set local statement_timeout = 0`
  await sql`select pg_advisory_xact_lock(${migrationLock})`
  // Whoever waits for a table holds up all who come after: better to give up than to stop the replicas that serve.
  await sql`set local lock_timeout = '2s'`
  const [server] = await sql<{ encoding: string }>`
    select current_setting('server_encoding') as encoding`
  if (server?.encoding !== 'UTF8') {
    throw new Error(`The database is encoded as ${server?.encoding}; create it with encoding UTF8.`)
  }
  const version = await readSchemaVersion(sql)
  refuseNewer(version, migrations)
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
  return { applied: missing.map(({ name }) => name), version: migrations.length }
}

/** Refuses a schema that is older or newer than the one this program was made for. */
export async function requireSchema(sql: Sql, migrations: Migration[]): Promise<void> {
  refuseNewer(await requireMigrated(sql, migrations), migrations)
}

/**
 * Refuses an older schema; the version. A newer one does not hold up who serves already: the replicas of two releases
 * run side by side during an upgrade, and a migration leaves what the older one uses.
 */
export async function requireMigrated(sql: Sql, migrations: Migration[]): Promise<number> {
  // In one question, as everybody who starts waits for the answer: what is not there fails, which harms no transaction.
  const version = await readNewest(sql).catch((error) => {
    if (isAnswer(error) && error.code === '42P01') return 0
    throw error
  })
  if (version < migrations.length) {
    throw new SchemaError(
      `The database has schema version ${version}, this program needs ${migrations.length}: run "prompt-signals migrate" first.`,
    )
  }
  return version
}

function refuseNewer(version: number, migrations: Migration[]): void {
  if (version > migrations.length) {
    throw new SchemaError(
      `The database has schema version ${version}, newer than the ${migrations.length} this program knows: use a newer prompt-signals.`,
    )
  }
}
