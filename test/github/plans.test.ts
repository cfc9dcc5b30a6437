// Plans that were made while the tables were empty must serve as well once they are full.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { readConfig } from '../../src/config.ts'
import type { Db } from '../../src/db/client.ts'
import { openDatabase } from '../../src/db/open.ts'
import { setWebhook } from '../../src/github/manage.ts'
import { pruneDeliveries } from '../../src/github/prune.ts'
import { receiveDelivery } from '../../src/github/receive.ts'
import { requireWebhook } from '../../src/github/verify.ts'
import { createOrganisation } from '../../src/orgs/manage.ts'
import { createPrompt } from '../../src/prompts/manage.ts'
import { createDatabase, type TestDatabase } from '../harness.ts'
import { createTestClock } from '../service.ts'
import { idOf, merged, pullRequest, push, renamed, sha } from './payloads.ts'

const tables = [
  'organisations',
  'prompts',
  'github_webhooks',
  'github_deliveries',
  'github_repositories',
  'github_touches',
  'github_pull_requests',
  'github_pull_request_prompts',
]
const path = 'prompts/greeting.md'
const repositoryId = idOf('Acme/Prompts')
const clock = createTestClock()
let database: TestDatabase
let db: Db
let org: string

beforeAll(async () => {
  database = await createDatabase()
  // One connection each for statements and for transactions, so that every plan is made and used on the same one.
  const options = { queryTimeoutMs: 0, maxConnections: 1, whenInUse: 'fail' as const }
  db = await openDatabase(readConfig({}, database.settings), options)
  for (const table of tables) await db.sql.script(`alter table ${table} set (autovacuum_enabled = off)`)
  org = (await createOrganisation(db, clock, { name: 'Acme', plan: 'free', monthlyLimit: null })).id
  const place = { repository: 'Acme/Prompts', path }
  await createPrompt(db, clock, { org, name: 'greeting', id: null, file: place })
  await setWebhook(db, clock, org)
})

afterAll(async () => {
  await db.close()
  await database.close()
})

let count = 0

async function deliver(...deliveries: [string, object][]): Promise<void> {
  const { organisationId } = await requireWebhook(db, org)
  for (const [event, payload] of deliveries) {
    await receiveDelivery(db, clock, organisationId, { event, id: randomUUID(), payload })
  }
}

/** The life of a pull request, a direct push, and a round of pruning. */
async function work(): Promise<void> {
  count += 1
  const head = `branch ${count}`
  const change = { modified: [path] }
  const pr = { number: count, head, mergeSha: sha(`merge ${count}`) }
  await deliver(
    ['push', push({ branch: head, after: sha(head), commits: [change], created: true })],
    ['pull_request', pullRequest('opened', { number: count, head })],
    ['pull_request', pullRequest('reopened', { number: count, head })],
    ['push', push({ after: sha(`merge ${count}`), commits: [{ ...change, id: sha(head), distinct: false }, {}] })],
    ['pull_request', merged(pr)],
    ['pull_request', merged({ ...pr, number: 1_000_000 + count, base: 'develop' })],
    ['push', push({ after: sha(`direct ${count}`), commits: [change] })],
  )
  await pruneDeliveries(db, clock)
}

const renameBothWays = () =>
  deliver(
    ['repository', renamed('Acme/Words', 'Prompts', repositoryId)],
    ['repository', renamed('Acme/Prompts', 'Words', repositoryId)],
  )

/** Makes each connection hand its counts over, and adds them up. */
async function readCounts(): Promise<{ scanned: number; indexed: number }> {
  await db.transaction((sql) => sql`select pg_stat_force_next_flush()`)
  await db.transaction((sql) => sql`select 1`)
  await db.sql`select pg_stat_force_next_flush()`
  const [counts] = await db.sql<{ scanned: number; indexed: number }>`
    select
      (select sum(seq_tup_read) from pg_stat_user_tables where relname = any(${tables}::text[]))::bigint as scanned,
      (select sum(idx_tup_read) from pg_stat_user_indexes where relname = any(${tables}::text[]))::bigint as indexed`
  return counts as { scanned: number; indexed: number }
}

test('no statement reads a table from end to end, or more of an index than it needs', async () => {
  clock.set('2026-11-14T12:00:00Z')
  await db.sql.script('vacuum analyze')
  for (let round = 0; round < 8; round += 1) {
    await work()
    await renameBothWays()
  }
  await db.sql.script(`
    insert into organisations (public_id, name, plan, created_at)
    select 'org_filled' || n, 'Filled', 'free', now() from generate_series(1, 5000) n;
    insert into prompts (public_id, organisation_id, name, repository, path, created_at)
    select 'pmt_filled' || id, id, 'Filled', 'acme/prompts', '${path}', now() from organisations where name = 'Filled';
    insert into github_webhooks
    select id, 'secret', now() from organisations where name = 'Filled';
    insert into github_deliveries
    select o.id, 'filled ' || n, '2026-11-14T12:00:00Z' from organisations o, generate_series(1, 5000) n
    where o.public_id = '${org}';
    insert into github_repositories
    select p.organisation_id, 1000000000 + n, 'acme/filled-' || n, '2026-11-14T12:00:00Z'
    from prompts p, generate_series(1, 5000) n
    where p.name = 'greeting';
    insert into github_touches
    select p.organisation_id, ${repositoryId}, 'filled ' || n, 'commit ' || n, p.id, '2026-11-14T12:00:00Z',
      array['commit ' || n], array['commit ' || n], true
    from prompts p, generate_series(1, 5000) n
    where p.name = 'greeting';
    insert into github_pull_requests
    select p.organisation_id, ${repositoryId}, 10000 + n, 'https://example.com', 'merged', ${repositoryId}, 'filled ' || n,
      'commit ' || n, 'main', 'merge ' || n, '{}', '2026-11-14T12:00:00Z', '{}', '2026-11-14T12:00:00Z', 1, 0
    from prompts p, generate_series(1, 5000) n
    where p.name = 'greeting';
    insert into github_pull_request_prompts
    select r.organisation_id, r.repository_id, r.number, p.id from github_pull_requests r, prompts p
    where p.name = 'greeting' and r.number between 10001 and 15000;
  `)
  const before = await readCounts()
  await work()
  const after = await readCounts()
  expect(after.scanned - before.scanned).toBe(0)
  expect(after.indexed - before.indexed).toBeLessThan(1_000)
  await renameBothWays()
  expect((await readCounts()).scanned - before.scanned).toBe(0)
})
