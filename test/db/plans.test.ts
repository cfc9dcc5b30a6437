// Plans are made once and kept. Those made while a table was empty must not scan it once the service has seen it grow.
import { expect, test } from 'bun:test'
import { analyzeGrownTables } from '../../src/db/analyze.ts'
import { pruneGithub } from '../../src/github/settings.ts'
import { pruneIdempotencyKeys } from '../../src/signals/record.ts'
import { eraseBefore } from '../../src/signals/store_bulk.ts'
import type { Client } from '../client.ts'
import { createHook, type Hook, paths } from '../github/hook.ts'
import { merged, pullRequest, push } from '../github/payloads.ts'
import { readRows } from '../rows_read.ts'
import { entry } from '../service.ts'
import { startReplica } from '../signals/fixtures.ts'
import { useOwnService } from '../use.ts'

/** A statement is planned for any values when it runs for the sixth time. */
const roundsToPlan = 7
const roundsWhenFull = 3
const filledRows = 5_000
/** Far fewer than one scan of a filled table reads, and more than all scans of the small ones. */
const mostRowsScanned = 1_000

const service = useOwnService()
let hook: Hook

/** Everything a caller can set in motion, on a replica that has cached nothing. */
async function exercise(round: string): Promise<void> {
  const { db, clock } = service.services
  const replica = await startReplica(service)
  const full = await service.createTenant(1)
  const { key } = hook.tenant
  const prompt = hook.prompts.greeting
  const keyed = { 'idempotency-key': round }
  const postKeyed = () => replica.post(`/prompts/${prompt}/signals`, key, { value: 'negative' }, keyed)
  const statuses = [
    (await replica.postSignal(prompt, key)).status,
    (await postKeyed()).status,
    (await postKeyed()).status,
    (await replica.postSignal(prompt, key, { value: 'positive', subject: round })).status,
    (await replica.postSignal(prompt, key, { value: 'negative', subject: round })).status,
    (await replica.delete(`/prompts/${prompt}/signals?subject=${round.replace(' ', '%20')}`, key)).status,
    (await replica.postSignal(full.prompt, full.key)).status,
    (await replica.postSignal(full.prompt, full.key)).status,
    (await replica.getHistory(prompt, key)).status,
    (await replica.getHistory(prompt, key, '?action=deployed')).status,
    (await replica.get(`/prompts/${prompt}/impact`, key)).status,
    (await replica.get('/impact', key)).status,
    (await replica.get('/changes?search=e', key)).status,
  ]
  expect(statuses).toEqual([201, 201, 201, 201, 200, 200, 201, 429, 200, 200, 200, 200, 200])
  await readSignals(replica, prompt, key)
  await service.addHistory(prompt, [entry()])
  await hook.deliver('push', push({ commits: [{ modified: [paths.greeting] }] }))
  await hook.deliver('pull_request', pullRequest('opened'))
  await hook.deliver('pull_request', merged())
  await pruneIdempotencyKeys(db, clock.now())
  await pruneGithub(db, clock.now())
}

async function readSignals(replica: Client, prompt: string, key: string): Promise<void> {
  const { sql } = service.services.db
  const queries = ['signals', 'signals?value=negative&metadata.a=b', 'stats?tz=Asia/Kathmandu&by=metadata.a']
  for (const path of [...queries.map((query) => `/prompts/${prompt}/${query}`), '/usage']) {
    expect((await replica.get(path, key)).status).toBe(200)
  }
  const signals = [{ value: 'positive' }, { value: 'positive', idempotency_key: crypto.randomUUID() }]
  const recorded = await replica.post(`/prompts/${prompt}/signals/batch`, key, { signals })
  const [{ id: last }] = recorded.body.data
  for (const path of [`/prompts/${prompt}/signals/export`, '/signals/export']) {
    for (const query of ['', `?format=csv&after=${last}`]) {
      expect((await replica.get(`${path}${query}`, key)).status).toBe(200)
    }
  }
  const [row] = await sql<{ id: number; organisationId: number; first: string }>`
    select p.id, p.organisation_id as "organisationId", (select min(s.id)::text from signals s where s.prompt_id = p.id) as first
    from prompts p where p.public_id = ${prompt}`
  const { id, organisationId, first } = row as NonNullable<typeof row>
  await sql`select roll_up_signals(${organisationId}, ${id}, 3)`
  await sql`select erase_signals(${organisationId}, ${id}, array[${first}::text::bigint])`
  await eraseBefore(sql, { id, organisationId }, new Date(0), new Date('2100-01-01'), 1)
}

/** Rows of other organisations, none of them due to be pruned. */
const fill = () =>
  service.services.db.sql.script(`
    insert into organisations (public_id, name, plan, monthly_limit, created_at)
    select 'org_' || n, 'Other', 'free', 1000, now() from generate_series(1, ${filledRows}) n;
    create temporary table others as
    select id, row_number() over () as n from organisations where name = 'Other';
    insert into api_keys (public_id, organisation_id, name, prefix, hash, scopes, created_at)
    select 'key_' || n, id, '', 'psk', sha256(n::text::bytea), '{signals:write}', now() from others;
    insert into prompts (public_id, organisation_id, name, repository, path, created_at)
    select 'pmt_' || n, id, 'Other', 'acme/prompts', 'a.md', now() from others;
    insert into signals (organisation_id, prompt_id, value, created_at) select id, n, 'positive', now() from others;
    insert into signal_watermarks (prompt_id, organisation_id, last_rolled_up_id) select 1000000 + n, id, 0 from others;
    insert into signal_counts (prompt_id, organisation_id, minutes, start, positive, negative)
    select 1000000 + n, id, 1440, '2026-11-01T00:00:00Z', 1, 0 from others;
    insert into signal_commit_counts (prompt_id, organisation_id, commit_sha, minutes, start, positive, negative)
    select 1000000 + n, id, 'c0ffee00', 1440, '2026-11-01T00:00:00Z', 1, 0 from others;
    insert into signal_usage (organisation_id, month, used)
    select id, date_trunc('month', now() at time zone 'utc'), 1 from others;
    insert into idempotency_keys (organisation_id, key, prompt_id, signal_id, created_at) select id, n, n, n, now() from others;
    insert into history_entries (
      organisation_id, prompt_id, action, user_name, user_email, commit_sha, branch_name, created_at)
    select p.organisation_id, p.id, 'deployed', 'Ada', 'ada@example.com', p.id, 'main', now()
    from prompts p where p.name = 'Other';
    insert into github_webhooks (organisation_id, secret, created_at) select id, 'x', now() from others;
    insert into github_events (organisation_id, id, signature, received_at)
    select id, n, 'sha256=' || encode(sha256(n::text::bytea), 'hex'), now() from others;
    insert into github_affected_prompts (
      organisation_id, repository_id, branch, head_sha, prompt_id, pushed_at, prompt_shas, push_shas, all_new)
    select p.organisation_id, p.id, 'main', p.id, p.id, now(), array[p.id::text], array[p.id::text], true
    from prompts p where p.name = 'Other';
    insert into github_pull_requests (
      organisation_id, repository_id, number, url, state, head_branch, head_sha, base_branch, opened_by, opened_at,
      commit_count, changed_at)
    select p.organisation_id, p.id, 1, 'https://github.com/acme/prompts/pull/1', 'open', 'work', 'c0ffee', 'main', '{}',
      now(), 1, now()
    from prompts p where p.name = 'Other';
    insert into github_pull_request_prompts (organisation_id, repository_id, number, prompt_id)
    select organisation_id, id, 1, id from prompts where name = 'Other';
    insert into github_repositories (organisation_id, id, name, seen_at)
    select organisation_id, id, repository, now() from prompts where name = 'Other';
    insert into merged_commits (organisation_id, prompt_id, branch_name, commit_sha, merge_sha)
    select organisation_id, id, 'main', id, id from prompts where name = 'Other';`)

test('once the service has analysed a table that was empty, no statement scans it', async () => {
  const { sql } = service.services.db
  const tables = await sql<{ name: string }>`
    select relname::text as name from pg_class
    where relnamespace = to_regnamespace(current_schema()) and relkind = 'r'`
  for (const { name } of tables) await sql.script(`alter table ${name} set (autovacuum_enabled = off)`)
  // The planner then knows that they are empty, and does not take them to be of some middle size.
  await sql.script('vacuum (analyze)')
  hook = await createHook(service)
  for (let round = 0; round < roundsToPlan; round += 1) await exercise(`empty ${round}`)
  await fill()
  // Postgres counts rows only after each connection has reported what it did, which this waits for.
  await readRows(service.services.db, 'scan')
  await analyzeGrownTables(service.services.db)
  const before = await readRows(service.services.db, 'scan')
  for (let round = 0; round < roundsWhenFull; round += 1) await exercise(`full ${round}`)
  const after = await readRows(service.services.db, 'scan')
  const scanned = [...after].map(([name, number]) => [name, number - (before.get(name) ?? 0)] as const)
  expect(scanned.filter(([, number]) => number > mostRowsScanned)).toEqual([])
})
