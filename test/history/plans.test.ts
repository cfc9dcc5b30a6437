// The plans of the statements that read, kept from a time when the tables were empty.
import { expect, test } from 'bun:test'
import { readConfig } from '../../src/config.ts'
import { analyzeGrownTables } from '../../src/db/analyze.ts'
import type { Sql } from '../../src/db/client.ts'
import { openAny } from '../../src/db/open.ts'
import { selectFilteredPage, selectPage, selectStates } from '../../src/history/store.ts'
import {
  findPromptInFile,
  findPromptOfAny,
  findPromptsByIds,
  selectPrompt,
  selectPrompts,
  selectPromptsIn,
  updateFilesSeen,
  updatePrompt,
  updateRepository,
} from '../../src/prompts/store.ts'
import { createDatabase } from '../harness.ts'

const page = { offset: 10, size: 10, since: '2026-01-01T00:00:00Z', until: 'infinity' }
const file = { repository: 'acme/prompts', path: 'p7.md' }
const prompts = Array.from({ length: 50 }, (_, index) => `pmt_${index}`)

type Statements = Record<string, (sql: Sql) => Promise<unknown>>

const lookUps: Statements = {
  'one version': (sql) => selectStates(sql, prompts.slice(0, 1)),
  'many versions': (sql) => selectStates(sql, prompts),
  'a prompt of an organisation': (sql) => findPromptsByIds(sql, ['pmt_7']),
}
const others: Statements = {
  'a page': (sql) => selectPage(sql, 7, page),
  'a page of some actions': (sql) => selectFilteredPage(sql, 7, page, ['deployed'], null),
  'a page of a branch': (sql) => selectFilteredPage(sql, 7, page, ['deployed', 'pr_merged'], 'main'),
  'a prompt': (sql) => findPromptOfAny(sql, 'pmt_7'),
  'the prompt of a file': (sql) => findPromptInFile(sql, 1, file),
  'the prompts of a repository': (sql) => selectPromptsIn(sql, 1, file.repository),
  'the prompts of an organisation': (sql) => selectPrompts(sql, 1, null, Number.MAX_SAFE_INTEGER, 25),
  'the prompts that a search finds': (sql) => selectPrompts(sql, 1, 'seven', Number.MAX_SAFE_INTEGER, 25),
  'a prompt as it is shown': (sql) => selectPrompt(sql, 7),
  'a link': (sql) => updatePrompt(sql, 7, { name: 'Test', ...file, file_state: null, file_moved_to: null }),
  'a file that was seen': (sql) =>
    updateFilesSeen(sql, [{ promptId: 7, state: 'removed', movedTo: null, at: new Date(0) }]),
  'a renamed repository': (sql) => updateRepository(sql, 1, 'acme/none', 'acme/other'),
}

async function rowsScanned(sql: Sql): Promise<number> {
  // A backend keeps its counts to itself for a while.
  await sql`select pg_stat_force_next_flush()`
  const [row] = await sql<{ rows: number }>`
    select sum(seq_tup_read)::bigint as rows from pg_stat_user_tables where relname in ('prompts', 'history_entries')`
  return row?.rows as number
}

async function fill(sql: Sql): Promise<void> {
  await sql.script(`
    insert into organisations (public_id, name, plan, created_at)
    select 'org_' || n, 'Test', 'free', now() from generate_series(1, 20) n;
    insert into prompts (public_id, organisation_id, name, repository, path, history_count, created_at)
    select 'pmt_' || n, 1 + n / 1000, 'Test', 'acme/prompts', 'p' || n || '.md', 5, now()
    from generate_series(1, 10000) n;
    insert into history_entries
      (organisation_id, prompt_id, action, user_name, user_email, commit_sha, branch_name, created_at)
    select
      p.organisation_id, p.id, 'deployed', 'Ada', 'ada@example.com', 'sha' || n, 'main',
      '2026-02-01'::timestamptz + n * interval '1 minute'
    from prompts p, generate_series(1, 5) n`)
}

test.each<[string, string, Statements]>([
  ['empty', '', { ...lookUps, ...others }],
  // The statistics then say that there is nothing to read, and a scan looks cheaper than any index.
  ['empty and analysed', 'analyze prompts, history_entries', { ...lookUps, ...others }],
])('once the service has analysed a table that was %s, nothing scans it', async (_, prepare, statements) => {
  const database = await createDatabase()
  const options = { queryTimeoutMs: 0, maxConnections: 1, whenInUse: 'fail' as const }
  const db = await openAny(readConfig({}, database.settings), options)
  await db.sql.script(`
    alter table prompts set (autovacuum_enabled = off);
    alter table history_entries set (autovacuum_enabled = off);
    ${prepare}`)
  for (let round = 0; round < 7; round += 1) {
    for (const run of Object.values(statements)) await run(db.sql)
  }
  await fill(db.sql)
  // A backend keeps its counts to itself for a while.
  await db.sql`select pg_stat_force_next_flush()`
  await analyzeGrownTables(db)
  const scanning: [string, number][] = []
  for (const [name, run] of Object.entries(statements)) {
    const before = await rowsScanned(db.sql)
    await run(db.sql)
    const scanned = (await rowsScanned(db.sql)) - before
    if (scanned > 0) scanning.push([name, scanned])
  }
  expect(scanning).toEqual([])
  await db.close()
  await database.close()
})
