// The plans of the statements that write histories, kept from a time when the tables were empty.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readConfig } from '../../src/config.ts'
import type { Db } from '../../src/db/client.ts'
import { openAny } from '../../src/db/open.ts'
import { selectPage } from '../../src/history/store.ts'
import { type EntryToRecord, insertEntries, lockHistories, reconcileEntries } from '../../src/history/store_write.ts'
import { createDatabase, type TestDatabase } from '../harness.ts'

let database: TestDatabase
let db: Db

beforeAll(async () => {
  database = await createDatabase()
  const options = { queryTimeoutMs: 0, maxConnections: 1, whenInUse: 'fail' as const }
  db = await openAny(readConfig({}, database.settings), options)
})

afterAll(async () => {
  await db.close()
  await database.close()
})

const perPrompt = 2_000

const entryOf = (prompt: number, commit: string, more: Partial<EntryToRecord> = {}): EntryToRecord => ({
  ...{ prompt_id: prompt, action: 'deployed', user_name: 'Ada', user_email: 'ada@example.com', commit_sha: commit },
  ...{ branch_name: 'main', pr_number: null, pr_url: null, created_at: new Date('2027-01-01T00:00:00Z') },
  ...more,
})
const merge: Partial<EntryToRecord> = { action: 'pr_merged', pr_number: 7, pr_url: 'https://example.com/7' }

let round = 0
const writes: Record<string, () => Promise<unknown>> = {
  'new entries': () =>
    insertEntries(
      db.sql,
      [1, 2, 3].map((prompt) => entryOf(prompt, `new ${round}`)),
    ),
  'a late entry': () =>
    insertEntries(db.sql, [entryOf(1, `late ${round}`, { created_at: new Date('2026-01-02T00:00:00Z') })]),
  'a replay': () => insertEntries(db.sql, [entryOf(1, 'sha 1')]),
  'a lock': () => lockHistories(db.sql, [entryOf(1, ''), entryOf(2, '')]),
  'a merge of a deploy': () =>
    reconcileEntries(db.sql, [
      { ...entryOf(2, `m ${round}`, merge), reopenings: 0, in_git: false, on_github: true, covers: ['sha 9'] },
    ]),
  'a deep page': () =>
    selectPage(db.sql, 1, { offset: 225, size: 25, since: '2026-01-02T00:00:00Z', until: '2026-12-01T00:00:00Z' }),
}

async function rowsRead(): Promise<{ scanned: number; fetched: number }> {
  // A backend keeps its counts to itself for a while.
  await db.sql`select pg_stat_force_next_flush()`
  const [row] = await db.sql<{ scanned: number; fetched: number }>`
    select sum(seq_tup_read)::bigint as scanned, sum(idx_tup_fetch)::bigint as fetched
    from pg_stat_user_tables
    where relname in ('prompts', 'history_entries', 'history_ranks')`
  return row as { scanned: number; fetched: number }
}

test('no statement that writes a history scans what was empty when it was planned', async () => {
  await db.sql.script(`
    alter table prompts set (autovacuum_enabled = off);
    alter table history_entries set (autovacuum_enabled = off);
    alter table history_ranks set (autovacuum_enabled = off);
    insert into organisations (public_id, name, plan, created_at) values ('org_1', 'Test', 'free', now());
    insert into prompts (public_id, organisation_id, name, created_at)
    select 'pmt_' || n, 1, 'Test', now() from generate_series(1, 10) n`)
  for (; round < 7; round += 1) for (const run of Object.values(writes)) await run()
  await db.sql.script(`
    insert into prompts (public_id, organisation_id, name, created_at)
    select 'pmt_' || n, 1, 'Test', now() from generate_series(11, 5000) n;
    insert into history_entries
      (organisation_id, prompt_id, action, user_name, user_email, commit_sha, branch_name, created_at)
    select 1, p, 'deployed', 'Ada', 'ada@example.com', 'sha ' || n, 'main', '2026-01-01'::timestamptz + n * interval '1 hour'
    from generate_series(1, 10) p, generate_series(10, ${perPrompt + 9}) n;
    update prompts set history_count = (select count(*) from history_entries h where h.prompt_id = prompts.id);
    delete from history_ranks;
    select rank_history_gap(p.id, null, null, 0, p.history_count) from prompts p where p.history_count > 0`)
  const reading: [string, object][] = []
  for (const [name, run] of Object.entries(writes)) {
    const before = await rowsRead()
    await run()
    const after = await rowsRead()
    const read = { scanned: after.scanned - before.scanned, fetched: after.fetched - before.fetched }
    if (read.scanned > 0 || read.fetched > 1_200) reading.push([name, read])
    round += 1
  }
  expect(reading).toEqual([])
})
