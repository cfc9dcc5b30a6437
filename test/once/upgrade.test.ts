import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Db } from '../../src/db/client.ts'
import { migrate } from '../../src/db/migrations.ts'
import { migrations } from '../../src/platform.ts'
import type { Answer } from '../client.ts'
import { errorLineOf, eventually, run, startServer } from '../program.ts'
import { openDb } from '../tenant.ts'
import { useProgram } from '../use.ts'

let db: Db

afterAll(() => db.close())
const { client, settings, tenant } = useProgram()

beforeAll(async () => {
  db = await openDb(settings, { maxConnections: 2 })
})

/** Callers of both operations and of the readiness, one request after another, until they are stopped. */
function load() {
  const answers: number[] = []
  let settled = false
  const calls = [
    () => client.postSignal(tenant.prompt, tenant.key),
    () => client.getHistory(tenant.prompt, tenant.key),
    () => client.call('GET', '/readyz'),
  ]
  const callers = Array.from({ length: 12 }, async (_, index) => {
    while (!settled) answers.push((await (calls[index % 3] as () => Promise<Answer>)()).status)
  })
  const more = (count: number) => {
    const wanted = answers.length + count
    return eventually(() => answers.length >= wanted, true)
  }
  const end = async () => {
    settled = true
    await Promise.all(callers)
    return [...new Set(answers)].sort()
  }
  return { more, end }
}

test('a replica of the older release serves on, and stays ready, while the schema becomes newer', async () => {
  // It was not probed before, so that it has no result from before the migration.
  const other = await startServer(settings)
  const { more, end } = load()
  await more(200)
  const [same] = await db.sql<{ text: string }>`select pg_get_functiondef('write_signals'::regproc) as text`
  const expand = `
    alter table signals add column note text;
    alter table prompts add column archived_at timestamptz, add column rank integer not null default 0;
    alter table organisations add column region text not null default 'eu';
    alter table api_keys add column note text;
    create table later (id bigint primary key);
    ${same?.text};`
  await migrate(db, [...migrations, { name: 'expand', text: expand }])
  await more(200)
  expect(await end()).toEqual([200, 201])
  await eventually(async () => (await fetch(`${other.url}/readyz`)).status, 200)
  expect(await other.stop()).toBe(0)
  // A replica that starts now must be of the newer release.
  expect(errorLineOf(await run(['serve'], { settings }))).toContain('use a newer prompt-signals')
})

test('a migration gives up a table that is locked, rather than block the replicas behind it', async () => {
  const held = Promise.withResolvers<void>()
  const release = Promise.withResolvers<void>()
  const holder = db.transaction(async (sql) => {
    await sql`select from prompts limit 1`
    held.resolve()
    await release.promise
  })
  await held.promise
  const { more, end } = load()
  await more(20)
  const [known] = await db.sql<{ version: number }>`select max(version) as version from schema_migrations`
  const padding = Array.from({ length: known?.version ?? 0 }, (_, index) => ({ name: `${index}`, text: '' }))
  const blocked = { name: 'blocked', text: 'alter table prompts add column blocked text' }
  const rejection = await migrate(db, [...padding, blocked]).catch((error: Error) => error.message)
  expect(rejection).toBe('The tables are locked, perhaps by a backup. Nothing was migrated: try again later.')
  await more(20)
  expect(await end()).toEqual([200, 201])
  release.resolve()
  await holder
  expect(await migrate(db, [...padding, blocked])).toMatchObject({ applied: ['blocked'] })
})
