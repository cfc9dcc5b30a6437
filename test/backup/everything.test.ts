import { expect, test } from 'bun:test'
import { restoreBackup } from '../../src/backup/restore.ts'
import { writeBackup } from '../../src/backup/write.ts'
import { systemClock } from '../../src/clock.ts'
import type { Db } from '../../src/db/client.ts'
import { type Migration, migrate, readSchemaVersion } from '../../src/db/migrations.ts'
import { migrations } from '../../src/platform.ts'
import { leaseDeliveries } from '../../src/webhooks/store_events.ts'
import { rejectionOf } from '../program.ts'
import { useEmptyDatabases } from './empty.ts'

const openEmpty = useEmptyDatabases()

async function openMigrated(script: string, schema = migrations): Promise<Db> {
  const db = await openEmpty()
  await migrate(db, schema)
  await db.sql.script(script)
  return db
}

async function backUp(db: Db): Promise<string[]> {
  let text = ''
  await writeBackup(db, systemClock, 'test', async (more) => {
    text += more
  })
  return text.split('\n').slice(0, -1)
}

async function* linesOf(lines: string[]): AsyncGenerator<string> {
  yield* lines
}

const later: Migration = {
  name: 'later',
  text: `
    create table z_parents ("Odd ""name" text primary key);
    create table a_children (
      id integer generated always as identity primary key,
      parent text references z_parents,
      big bigint, exact numeric, floating float8, flags boolean[], texts text[], span interval, bytes bytea,
      document jsonb, at timestamptz(3), day date, longer text generated always as (parent || '!') stored
    );`,
}

const rows = `
  insert into z_parents values ('one'), (E'a\\u2028b"\\\\\\n\\t€');
  insert into a_children (parent, big, exact, floating, flags, texts, span, bytes, document, at, day) values
    ('one', 9223372036854775807, 0.10000000000000000000001, 0.1 + 0.2::float8, '{t,null,f}', E'{"a,b","\\\\"c\\\\"",null}',
      '1 year -3 days 04:05:06.789', '\\x00ff7f', '{"n": 12345678901234567890.1000, "t": "\\\\u20ac"}',
      '2026-02-28 23:59:59.999+00', '0001-01-01 BC'),
    (null, null, 'NaN', '-Infinity', '{}', '{}', null, '', 'null', 'infinity', null);`

test('the entries of histories are read fifty at a time, because their texts may be large', async () => {
  const db = await openMigrated(`
    insert into organisations (public_id, name, plan, monthly_limit, created_at) values ('org_a', 'A', 'free', 1, now());
    insert into history_entries (
      organisation_id, prompt_id, action, user_name, user_email, commit_sha, branch_name, created_at, text
    )
    select o.id, 1, 'deployed', 'Ada', 'ada@example.com', n::text, 'main', now(), 'text'
    from organisations o, generate_series(1, 120) n;`)
  const counts: number[] = []
  const rows = await writeBackup(
    db,
    systemClock,
    'test',
    async () => {},
    (count) => counts.push(count),
  )
  const steps = counts.map((count, index) => count - (counts[index - 1] ?? 0))
  expect(Math.max(...steps)).toBe(50)
  expect(rows).toBe(counts.at(-1) as number)
})

test('a table that a later migration adds is backed up and restored, to the last digit', async () => {
  const schema = [...migrations, later]
  const [source, target] = [await openMigrated(rows, schema), await openEmpty()]
  const lines = await backUp(source)
  // Its name comes first, but what it points to is needed before it.
  const tables = lines.filter((line) => line.startsWith('{"table"')).map((line) => JSON.parse(line).table)
  expect(tables.indexOf('a_children')).toBeGreaterThan(tables.indexOf('z_parents'))
  const all = await source.sql<{ name: string }>`
    select tablename::text as name from pg_tables where schemaname = 'public'`
  expect([...tables, 'schema_migrations'].sort()).toEqual(all.map(({ name }) => name).sort())

  expect(await restoreBackup(target, schema, linesOf(lines))).toEqual({ rows: 4, version: schema.length, disabled: 0 })
  expect((await backUp(target)).slice(1)).toEqual(lines.slice(1))
  const look = (db: Db) => db.sql`select a::text as text, longer from a_children a order by id`
  expect(await look(target)).toEqual(await look(source))
  const insert = (db: Db) => db.sql`insert into a_children (parent, big) values ('one', 5) returning id, big, longer`
  // The sequence goes on.
  expect(await insert(target)).toEqual([{ id: 3, big: 5, longer: 'one!' }])
})

test('a key that was rotated to one far behind it is restored', async () => {
  const target = await openEmpty()
  const source = await openMigrated(`
    insert into organisations (public_id, name, plan, monthly_limit, created_at) values ('org_a', 'A', 'free', 1, now());
    insert into api_keys (public_id, organisation_id, name, prefix, hash, scopes, created_at)
    select 'key_' || n, o.id, 'k', 'psk_', sha256(n::text::bytea), '{signals:write}', now()
    from organisations o, generate_series(1, 2500) n;
    update api_keys k set replaced_by = (select max(id) from api_keys) where public_id = 'key_1'`)
  const lines = await backUp(source)
  await restoreBackup(target, migrations, linesOf(lines))
  expect((await backUp(target)).slice(1)).toEqual(lines.slice(1))

  const withoutLast = lines.filter((line) => !line.includes('"key_2500"'))
  const other = await openEmpty()
  const end = withoutLast.at(-1)?.replace(/\d+/, (rows) => `${Number(rows) - 1}`) as string
  const cut = linesOf([...withoutLast.slice(0, -1), end])
  expect(await rejectionOf(restoreBackup(other, migrations, cut))).toContain('damaged')
})

test('a backup of an older release is restored and migrated; one of a newer release is rejected', async () => {
  const [source, target] = [await openMigrated(''), await openEmpty()]
  const lines = await backUp(source)
  const schema = [...migrations, later]
  expect(await restoreBackup(target, schema, linesOf(lines))).toEqual({ rows: 0, version: schema.length, disabled: 0 })
  expect(await target.sql`select count(*)::int as n from z_parents`).toEqual([{ n: 0 }])

  const newer = await backUp(target)
  const other = await openEmpty()
  expect(await rejectionOf(restoreBackup(other, migrations, linesOf(newer)))).toBe(
    `The backup has schema version ${schema.length}, newer than the ${migrations.length} this program knows: use a newer prompt-signals.`,
  )
  expect(await readSchemaVersion(other.sql)).toBe(0)
  expect(await rejectionOf(restoreBackup(target, schema, linesOf(lines)))).toBe(
    `The backup has schema version ${migrations.length}, the database ${schema.length}: restore into a new, empty database.`,
  )
})

test('restored endpoints send nothing until they are enabled, and then what was pending', async () => {
  const target = await openEmpty()
  const source = await openMigrated(`
    insert into organisations (public_id, name, plan, monthly_limit, created_at) values ('org_a', 'A', 'free', 1, now());
    insert into webhook_endpoints (public_id, organisation_id, kind, url, secret, created_at, disabled_at, disabled_reason)
    select 'whe_' || n, o.id, 'webhook', 'https://example.com', 'whsec_', now(), d.at, d.reason
    from organisations o, (values (1, null, null), (2, now(), 'gone')) d (n, at, reason);
    insert into webhook_events (public_id, organisation_id, type, dedup_key, data, created_at)
    select 'msg_1', id, 'ping', 'once', '{}', now() from organisations;
    insert into webhook_deliveries (organisation_id, endpoint_id, event_id, next_attempt_at)
    select e.organisation_id, e.id, v.id, now() from webhook_endpoints e, webhook_events v`)
  await restoreBackup(target, migrations, linesOf(await backUp(source)))
  const reasons = await target.sql`select public_id as id, disabled_reason as reason from webhook_endpoints order by id`
  expect(reasons).toEqual([
    { id: 'whe_1', reason: 'restored' },
    { id: 'whe_2', reason: 'gone' },
  ])
  const due = () => leaseDeliveries(target.sql, { isFailing: false, busyEndpoints: [], limit: 10, leaseMs: 1_000 })
  expect(await due()).toEqual([])
  await target.sql`update webhook_endpoints set disabled_at = null, disabled_reason = null where public_id = 'whe_1'`
  expect(await due()).toHaveLength(1)
})
