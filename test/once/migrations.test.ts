// What only a Postgres server makes possible: many concurrent migrators, and a database of another encoding.
import { expect, test } from 'bun:test'
import { migrations } from '../../src/platform.ts'
import { inFullRun } from '../full.ts'
import { createDatabase } from '../harness.ts'
import { errorLineOf, readJsonLines, run } from '../program.ts'
import { withPostgres } from '../services.ts'
import { urlOfDatabase } from '../templates.ts'
import { closeAfterTest } from '../use.ts'

const migrators = inFullRun(20, 6)

/** An empty database in the place of a copy of the template, so that it is removed like one. */
async function createEmpty(encoding: string): Promise<string> {
  const { settings } = await closeAfterTest(createDatabase())
  const url = settings.DATABASE_URL as string
  const name = new URL(url).pathname.slice(1)
  await withPostgres(urlOfDatabase(url, 'postgres'), async (sql) => {
    await sql`drop database ${sql(name)} with (force)`
    await sql.unsafe(`create database ${name} encoding '${encoding}' template template0 lc_collate 'C' lc_ctype 'C'`)
  })
  return url
}

/** Makes every change of the schema slow, so that concurrent migrators are sure to overlap. */
const slowChanges = `
  create schema slow;
  create function slow.down() returns event_trigger language plpgsql as 'begin perform pg_sleep(0.03); end';
  create event trigger slow_down on ddl_command_start execute function slow.down()`

test('concurrent migrators all succeed, and each migration is applied once', async () => {
  const settings = { DATABASE_URL: await createEmpty('UTF8') }
  await withPostgres(settings.DATABASE_URL, (sql) => sql.unsafe(slowChanges))
  const finished = await Promise.all(Array.from({ length: migrators }, () => run(['migrate', '--json'], { settings })))
  expect(finished.map(({ status, stderr }) => ({ status, stderr }))).toEqual(
    Array(migrators).fill({ status: 0, stderr: '' }),
  )
  const results = finished.flatMap(({ stdout }) => readJsonLines(stdout))
  const names = migrations.map(({ name }) => name)
  expect(results.flatMap(({ applied }) => applied)).toEqual(names)
  expect(results.map(({ version }) => version)).toEqual(Array(migrators).fill(names.length))
  const rows = await withPostgres(
    settings.DATABASE_URL,
    (sql) => sql`select name from schema_migrations order by version`,
  )
  expect(rows.map(({ name }) => name)).toEqual(names)
})

test('a database that cannot hold every text is rejected', async () => {
  const settings = { DATABASE_URL: await createEmpty('SQL_ASCII') }
  const line = errorLineOf(await run(['migrate'], { settings }))
  expect(line).toBe('The database is encoded as SQL_ASCII; create it with encoding UTF8.')
  const tables = await withPostgres(
    settings.DATABASE_URL,
    (sql) => sql`select 1 from pg_tables where schemaname = 'public'`,
  )
  expect(tables).toHaveLength(0)
})
