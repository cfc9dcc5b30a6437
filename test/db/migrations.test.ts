import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { writeBackup } from '../../src/backup/write.ts'
import { systemClock } from '../../src/clock.ts'
import { readConfig } from '../../src/config.ts'
import type { Db } from '../../src/db/client.ts'
import { type Migration, migrate } from '../../src/db/migrations.ts'
import { openAny } from '../../src/db/open.ts'
import { migrations } from '../../src/platform.ts'
import { createDatabase, engine } from '../harness.ts'
import { createFolder, createOperator, errorLineOf, eventually, rejectionOf, run, startServer } from '../program.ts'
import { closeAfterTest } from '../use.ts'

/** A migrated database of the test's own, opened without a look at its schema. */
async function openOwn() {
  const { settings } = await closeAfterTest(createDatabase())
  const options = { queryTimeoutMs: 0, maxConnections: 1, whenInUse: 'share' as const }
  const use = async <T>(work: (db: Db) => Promise<T>): Promise<T> => {
    const db = await openAny(readConfig({}, settings), options)
    return work(db).finally(db.close)
  }
  return { settings, use }
}

/** Back to nothing; the database itself stays. */
const emptied = 'drop schema public cascade; create schema public'

const versions = (db: Db) => db.sql<{ version: number; name: string }>`
  select version, name from schema_migrations order by version`

test('every file of sql/ is a migration, in order and under its own name', () => {
  const folder = join(import.meta.dir, '../../sql')
  const files = readdirSync(folder).sort()
  const text = (file: string) => readFileSync(join(folder, file), 'utf8')
  expect(migrations).toEqual(files.map((file) => ({ name: file.replace(/\.sql$/, ''), text: text(file) })))
  expect(files.map((file) => Number(file.slice(0, 4)))).toEqual(files.map((_, index) => index + 1))
})

test('the tables that grow with the signals are vacuumed early', async () => {
  const { use } = await openOwn()
  const options = ['autovacuum_vacuum_scale_factor=0.02', 'autovacuum_vacuum_insert_scale_factor=0.02']
  const tables = await use(
    ({ sql }) => sql`
      select relname as name from pg_class where relkind = 'r' and reloptions @> ${options}::text[] order by relname`,
  )
  expect(tables.map(({ name }) => name)).toEqual([
    'idempotency_keys',
    'signal_commit_counts',
    'signal_counts',
    'signals',
  ])
})

test('the keys of tenants’ tables begin with the organisation', async () => {
  const { use } = await openOwn()
  const others = await use(
    ({ sql }) => sql<{ name: string }>`
      select c.relname as name
      from pg_class c
      where c.relkind = 'r' and exists (
        select from pg_attribute a where a.attrelid = c.oid and a.attname in ('organisation_id', 'prompt_id', 'entry_id', 'endpoint_id')
      ) and not exists (
        select from pg_index i
        join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0] and a.attname = 'organisation_id'
        where i.indrelid = c.oid and (i.indisprimary or c.relname = 'removed_entries' and i.indisunique)
      )
      order by 1`,
  )
  // A wider key of signals costs time and space; see docs/decisions/019-history-versions-are-random.md.
  expect(others.map(({ name }) => name)).toEqual(['signals'])
})

test('a migration that fails leaves nothing behind, of itself and of those before it', async () => {
  const { use } = await openOwn()
  const good = { name: 'good', text: 'create table half_way (n int); insert into half_way values (1)' }
  const broken = { name: 'broken', text: 'create table broken (n int); select 1 / 0' }
  await use(async (db) => {
    const before = await versions(db)
    const more: Migration[] = [...migrations, good, broken]
    expect(await rejectionOf(migrate(db, more))).toBe('division by zero')
    expect(await versions(db)).toEqual(before)
    const [left] = await db.sql`select to_regclass('half_way') as good, to_regclass('broken') as broken`
    expect(left).toEqual({ good: null, broken: null })
    // The connection can still be used.
    expect(await migrate(db, [...migrations, good])).toEqual({ applied: ['good'], version: more.length - 1 })
  })
})

/** One that serves, one that needs a database, one that creates it, and one that reads a file first. */
const commands = [
  ['serve'],
  ['orgs', 'list'],
  ['orgs', 'create', '--name', 'A', '--plan', 'free'],
  ['history', 'import', '/dev/null'],
]

test('every command rejects a newer schema', async () => {
  const { settings, use } = await openOwn()
  const newer = migrations.length + 1
  await use((db) => db.sql`insert into schema_migrations values (${newer}, 'from_the_future', '')`)
  const line = `The database has schema version ${newer}, newer than the ${migrations.length} this program knows: use a newer prompt-signals.`
  for (const command of [...commands, ['migrate']]) {
    expect([command, errorLineOf(await run(command, { settings }))]).toEqual([command, line])
  }
})

test('every command rejects a database whose migrations differ from the program’s, and names the first', async () => {
  const { settings, use } = await openOwn()
  const line = (name = '') =>
    `The database was made with another ${name} than this program's: use the prompt-signals that made it, or an empty database.`
  await use((db) => db.sql`update schema_migrations set sha256 = md5(sha256) where version > 2`)
  // The others open it as one of these does.
  for (const command of [['serve'], ['migrate', '--dry-run'], ['backup', join(createFolder(), 'f')]]) {
    expect([command, errorLineOf(await run(command, { settings }))]).toEqual([command, line(migrations[2]?.name)])
  }
  // The table of another program.
  await use((db) => db.sql.script('alter table schema_migrations drop column sha256'))
  expect(errorLineOf(await run(['migrate'], { settings }))).toBe(line(migrations[0]?.name))
  // It has more migrations than this program.
  await use((db) => db.sql`insert into schema_migrations (version, name) values (1000, 'the last')`)
  expect(errorLineOf(await run(['orgs', 'list'], { settings }))).toBe(line(migrations[0]?.name))
})

test('a backup before a migration may take longer than a service gives its transactions', async () => {
  const { settings } = await openOwn()
  const queryTimeoutMs = 1_000
  const db = await openAny(readConfig({}, settings), { queryTimeoutMs, maxConnections: 1, whenInUse: 'fail' })
  const startedAt = performance.now()
  expect(await writeBackup(db, systemClock, 'test', () => Bun.sleep(50))).toBeGreaterThanOrEqual(0)
  expect(performance.now() - startedAt).toBeGreaterThan(queryTimeoutMs)
  await db.close()
})

test('an older schema: the embedded engine is brought up, Postgres waits for its operator', async () => {
  const { settings, use } = await openOwn()
  const last = migrations.length
  await use(async (db) => {
    await db.sql.script(emptied)
    await migrate(db, migrations.slice(0, -1))
  })
  if (engine === 'postgres') {
    const line = `The database has schema version ${last - 1}, this program needs ${last}: run "prompt-signals migrate" first.`
    const finished = await Promise.all(commands.map((command) => run(command, { settings })))
    expect(finished.map(errorLineOf)).toEqual(commands.map(() => line))
    expect(await createOperator(settings).one('migrate')).toEqual({ applied: [migrations.at(-1)?.name], version: last })
  }
  const server = await startServer(settings)
  await eventually(async () => (await fetch(`${server.url}/readyz`)).status, 200)
  expect((await use(versions)).at(-1)).toEqual({ version: last, name: migrations.at(-1)?.name as string })
  await use((db) => db.sql`drop table schema_migrations`)
  const readReason = async () => {
    const { reason } = (await (await fetch(`${server.url}/readyz`)).json()) as { reason?: string }
    return reason
  }
  await eventually(readReason, 'old_schema')
  expect(await server.stop()).toBe(0)
})

if (engine === 'embedded') {
  test('an embedded database is backed up before it is migrated, or not migrated; the last two backups stay', async () => {
    const { settings, use } = await openOwn()
    const folder = settings.DATA_DIR as string
    const operator = createOperator(settings)
    const last = migrations.length
    const older = migrations.slice(0, -1)
    const restoreOlder = (db: Db) => db.sql.script(emptied).then(() => migrate(db, older))
    await use(restoreOlder)
    for (const [age, number] of [3, 2, 99].entries()) {
      const older = join(folder, `before-${number}.backup`)
      writeFileSync(older, '')
      utimesSync(older, 1_000 - age, 1_000 - age)
    }
    const file = join(folder, `before-${last}.backup`)
    // As when there is no room for it.
    mkdirSync(file)
    for (const command of ['migrate', 'serve', 'orgs list']) {
      const { status, stderr } = await run(command.split(' '), { settings })
      expect([command, status, stderr]).toEqual([command, 1, expect.stringContaining('Nothing was migrated')])
    }
    expect(await use(versions)).toHaveLength(older.length)
    rmSync(file, { recursive: true })

    await use(
      (db) => db.sql`insert into organisations (public_id, name, plan, monthly_limit, created_at)
      values ('org_a', 'Kept', 'free', 1, now())`,
    )
    const { stderr } = await run(['orgs', 'list'], { settings })
    expect(stderr).toBe(`prompt-signals: Backing the database up to ${file} before it is migrated.\n`)
    const backups = readdirSync(folder).filter((name) => name.startsWith('before-'))
    expect(backups.sort()).toEqual(['before-3.backup', `before-${last}.backup`])
    await use(restoreOlder)
    await operator.one('restore', file)
    expect(await operator.json('orgs', 'list')).toMatchObject([{ name: 'Kept' }])
    expect(await use(versions)).toHaveLength(last)
  })

  test('a command of a newer release does not migrate the database of a running server', async () => {
    const { settings, use } = await openOwn()
    const server = await startServer(settings)
    await use((db) => db.sql`delete from schema_migrations where version = ${migrations.length}`)
    expect(errorLineOf(await run(['orgs', 'list'], { settings }))).toMatch(
      /^The database has schema version \d+, this /,
    )
    expect(await use(versions)).toHaveLength(migrations.length - 1)
    expect(await server.stop()).toBe(0)
  })
}

test('a dry run says what would be migrated, and migrates and creates nothing', async () => {
  const { settings, use } = await openOwn()
  await use((db) => db.sql.script(emptied))
  const names = migrations.map(({ name }) => name)
  const dryRun = () => createOperator(settings).one('migrate', '--dry-run')
  expect(await dryRun()).toEqual({ would_apply: names, database: 0, program: names.length })
  await use((db) => migrate(db, migrations.slice(0, 2)))
  expect(await dryRun()).toEqual({ would_apply: names.slice(2), database: 2, program: names.length })
  const missing = join(createFolder(), 'missing')
  const line = errorLineOf(await run(['migrate', '--dry-run'], { settings: { DATA_DIR: missing } }))
  expect(line).toContain('There is no database in')
  expect(existsSync(missing)).toBe(false)
})
