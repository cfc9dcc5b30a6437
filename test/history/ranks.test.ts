// The ranks that make a deep page as cheap as the first stay exact, in whichever order entries arrive, move and go.
import { expect, test } from 'bun:test'
import type { Db, Sql } from '../../src/db/client.ts'
import { spellingsOf } from '../../src/history/identity.ts'
import { importHistory } from '../../src/history/import.ts'
import { countChanges, type PromptEntry, parseReported, recordEntry, recordReported } from '../../src/history/record.ts'
import { selectPage } from '../../src/history/store.ts'
import { readCompare } from '../../src/impact/read_compare.ts'
import { selectCommitEntries } from '../../src/impact/store_lists.ts'
import { requirePrompt } from '../../src/prompts/find.ts'
import { entry, type Tenant } from '../service.ts'
import { useNewTenant, useOwnService } from '../use.ts'

// Its own database: what other files leave changes the plans of statements, and so the rows that they read.
const service = useOwnService()
const tenant = useNewTenant(service)

const minute = (number: number) => new Date(Date.UTC(2026, 0, 1) + number * 60_000).toISOString()
const range = (count: number, from = 0) => Array.from({ length: count }, (_, index) => from + index)
const deploy = (number: number) => entry({ commit_sha: `commit ${number}`, created_at: minute(number) })
const deployAt = (number: number) => entry({ created_at: minute(number) })

async function importEntries({ prompt }: Tenant, entries: object[]): Promise<void> {
  const { db, clock } = service.services
  async function* lines() {
    for (const one of entries) yield JSON.stringify({ prompt, ...one })
  }
  // The command has no deadline.
  const transaction: Db['transaction'] = (work) => db.transaction(work, { deadline: Number.POSITIVE_INFINITY })
  const { recorded } = await importHistory({ ...db, transaction }, clock, lines, () => {})
  expect(recorded).toBe(entries.length)
}

const post = ({ prompt, key }: Tenant, created_at: string) =>
  service.post(`/prompts/${prompt}/history`, key, entry({ created_at }))

async function record(sql: Sql, organisationId: number, given: PromptEntry[], source: 'git' | 'github') {
  const { clock } = service.services
  const reported = given.map((one) => parseReported(one, source, clock))
  return (await recordReported(sql, clock, organisationId, reported)).outcomes
}

const mergeOf = (promptId: number, number: number, covers: number[], pr_number = 7): PromptEntry => ({
  prompt: promptId,
  entry: { ...deploy(number), action: 'pr_merged', pr_number, pr_url: 'https://github.com/acme/prompts/pull/7' },
  covers: covers.map((covered) => `commit ${covered}`),
})

async function countRowsRead(work: (sql: Sql) => Promise<void>): Promise<number> {
  // These are the counts of a connection since it last flushed them to the server: only their growth means something.
  const read = async (sql: Sql) => {
    const [row] = await sql<{ rows: number }>`
      select sum(seq_tup_read + idx_tup_fetch)::bigint as rows from pg_stat_xact_user_tables
      where relname in ('history_entries', 'history_ranks')`
    return row?.rows ?? 0
  }
  return service.services.db.transaction(async (sql) => {
    const before = await read(sql)
    await work(sql)
    return (await read(sql)) - before
  })
}

const onSql = (sql: Sql) => ({ ...service.services.db, transaction: (work: (sql: Sql) => unknown) => work(sql) }) as Db

async function expectExactRanks({ prompt }: Tenant): Promise<void> {
  const rows = await service.services.db.sql<{ rank: number; before: number; count: number }>`
    select r.rank, n.before, p.history_count as count
    from prompts p
    join history_ranks r on r.prompt_id = p.id
    cross join lateral (
      select count(*) as before from history_entries h
      where h.prompt_id = p.id and (h.created_at, h.id) < (r.created_at, r.entry_id)
    ) n
    where p.public_id = ${prompt}
    order by r.rank`
  expect(rows.filter(({ rank, before }) => rank !== before)).toEqual([])
  const borders = [0, ...rows.map(({ rank }) => rank), rows[0]?.count as number]
  const gaps = borders.slice(1).map((border, index) => border - (borders[index] as number))
  expect(Math.max(...gaps)).toBeLessThanOrEqual(500)
}

async function readAll<T>({ prompt, key }: Tenant, query = ''): Promise<T[]> {
  const shown: T[] = []
  for (let page = 1; ; page += 1) {
    const { body } = await service.getHistory(prompt, key, `?limit=100&page=${page}${query}`)
    shown.push(...body.data)
    if (page < body.pagination.total_pages) continue
    expect(body.pagination.total_count).toBe(shown.length)
    return shown
  }
}

/** The same numbers in an order that looks random, and is the same in every run. */
function shuffle(numbers: number[]): number[] {
  let state = 1
  const keyed = numbers.map((number) => {
    state = (state * 48_271) % 2_147_483_647
    return [state, number] as const
  })
  return keyed.sort(([a], [b]) => a - b).map(([, number]) => number)
}

// It comes first, while Postgres knows the tables as empty: a plan for them must not read whole histories later.
test('new entries read neither a whole history nor those whose hashes only begin alike', async () => {
  const { db, clock } = service.services
  const prompt = await requirePrompt(db.sql, tenant.prompt)
  const commit = (number: number) => `abcdef1${number.toString(16).padStart(33, '0')}`
  const of = (number: number) => entry({ commit_sha: commit(number), created_at: minute(number) })
  await importEntries(tenant, range(1_000).map(of))
  const one = await countRowsRead(async (sql) => {
    expect((await recordEntry(onSql(sql), clock, prompt, of(1_000))).isNew).toBeTrue()
  })
  const batch = range(100, 1_001).map((number) => ({
    prompt: prompt.id,
    entry: { ...of(number), action: 'deployed' as const },
    covers: [],
  }))
  const several = await countRowsRead(async (sql) => {
    expect(countChanges(await record(sql, prompt.organisationId, batch, 'git'))).toBe(100)
  })
  expect([one < 600, several < 600]).toEqual([true, true])
})

test('pages, totals and time ranges are exact in any order of arrival', async () => {
  // Several entries of the same time among them, more of one time than lie between two ranks.
  const minutes = shuffle([...range(1_500), ...range(700).map(() => 700), ...range(300, 400)])
  await importEntries(tenant, minutes.slice(0, 600).map(deployAt))
  for (let from = 600; from < 900; from += 50) {
    await Promise.all(minutes.slice(from, from + 50).map((number) => post(tenant, minute(number))))
  }
  await importEntries(tenant, minutes.slice(900).map(deployAt))
  await expectExactRanks(tenant)

  const all = await service.services.db.sql<{ id: number; created_at: Date }>`
    select h.id, h.created_at from history_entries h join prompts p on p.id = h.prompt_id
    where p.public_id = ${tenant.prompt} order by h.created_at desc, h.id desc`
  expect(all).toHaveLength(minutes.length)
  const idsOf = (entries: { id: number }[]) => entries.map(({ id }) => id)
  expect(idsOf(await readAll(tenant))).toEqual(idsOf(all))
  for (const [since, until] of [
    [300, 1_200],
    [700, 700],
    [0, 5],
    [1_490, 5_000],
    [701, 700],
  ] as const) {
    const isBetween = ({ created_at }: { created_at: Date }) =>
      created_at >= new Date(minute(since)) && created_at <= new Date(minute(until))
    const shown = await readAll<{ id: number }>(tenant, `&since=${minute(since)}&until=${minute(until)}`)
    expect(idsOf(shown)).toEqual(idsOf(all.filter(isBetween)))
  }
})

/** A merge takes up deploys that sync reported, and not those of a client. */
const attributeToGit = (promptId: number) =>
  service.services.db.sql`
    update history_entries set in_git = true, by_call = false, as_given = false where prompt_id = ${promptId}`

test('pages and totals are exact after a merge has taken up entries deep in a long history', async () => {
  const { db } = service.services
  const { id, organisationId } = await requirePrompt(db.sql, tenant.prompt)
  const numbers = range(1_300)
  await importEntries(tenant, numbers.map(deploy))
  await attributeToGit(id)
  const { headers } = await service.getHistory(tenant.prompt, tenant.key)
  const covered = [...numbers.slice(240, 260), ...numbers.slice(490, 520), 800, 1_299]
  const outcomes = await db.transaction((sql) => record(sql, organisationId, [mergeOf(id, 800, covered)], 'github'))
  expect(outcomes).toEqual(['changed'])
  const left = numbers.filter((number) => number === 800 || !covered.includes(number))
  const expected = left.map((number) => `${number === 800 ? 'pr_merged' : 'deployed'} commit ${number}`)
  const shown = await readAll<{ action: string; commit_sha: string }>(tenant)
  expect(shown.map(({ action, commit_sha }) => `${action} ${commit_sha}`).reverse()).toEqual(expected)
  await expectExactRanks(tenant)
  expect((await service.getHistory(tenant.prompt, tenant.key)).headers.get('etag')).not.toBe(headers.get('etag'))
})

test('many merges in one batch read the ranks of a long history once, not once for each', async () => {
  const { db } = service.services
  const { id, organisationId } = await requirePrompt(db.sql, tenant.prompt)
  const [deploys, merges] = [3_000, 60]
  await importEntries(tenant, range(deploys).map(deploy))
  await attributeToGit(id)
  const given = range(merges).map((number) => mergeOf(id, deploys + number, [number, number + 1_000], number + 1))
  const read = await countRowsRead(async (sql) => {
    expect(countChanges(await record(sql, organisationId, given, 'git'))).toBe(merges)
  })
  expect(read).toBeLessThan(2 * deploys)
  await expectExactRanks(tenant)
  expect((await readAll(tenant)).length).toBe(deploys - merges)
})

test('a comparison of commits reads no others whose names begin alike', async () => {
  const prompt = await requirePrompt(service.services.db.sql, tenant.prompt)
  await importEntries(tenant, range(500).map(deploy))
  const query = { base: 'Commit 1', head: 'commit 2', since: null, until: null, margin: 0.05, share: null }
  const read = await countRowsRead(async (sql) => {
    const { base, head } = await readCompare(sql, prompt, query)
    expect([base.change?.commit_sha, head.change?.commit_sha]).toEqual(['commit 1', 'commit 2'])
  })
  expect(read).toBeLessThan(20)
})

test('a page reads a bounded number of rows at any depth, also when one prompt has nearly all entries', async () => {
  const { db, clock } = service.services
  const prompt = await requirePrompt(db.sql, tenant.prompt)
  await importEntries(tenant, range(5_000).map(deployAt))
  await db.sql.script('analyze prompts, history_entries, history_ranks')
  const always = { since: '-infinity', until: 'infinity' }
  for (const page of [1, 50, 100, 200, 201]) {
    const read = await countRowsRead(async (sql) => {
      const selected = await selectPage(sql, prompt, { offset: (page - 1) * 25, size: 25, ...always })
      expect(selected?.entries.length).toBe(page > 200 ? 0 : 25)
      expect(selected?.totalCount).toBe(5_000)
    })
    expect(read, `page ${page}`).toBeLessThan(600)
  }
  const commits = await countRowsRead(async (sql) => {
    expect(await selectCommitEntries(sql, prompt, ['abcdef0', '1234567'].map(spellingsOf), ['deployed'])).toEqual([])
  })
  expect(commits).toBeLessThan(100)
  // The newest entry, and one with five newer ones.
  for (const created_at of [minute(6_000), minute(4_994.5)]) {
    const read = await countRowsRead(async (sql) => {
      expect((await recordEntry(onSql(sql), clock, prompt, entry({ created_at }))).isNew).toBeTrue()
    })
    expect(read, created_at).toBeLessThan(600)
  }
})

test('a page does not read a whole history to sort it, whatever the statistics', async () => {
  const tenants = await Promise.all(range(20).map(() => service.createTenant()))
  const { db } = service.services
  // Equally long histories, scattered over the table: there Postgres would rather collect all rows.
  for (const from of [1, 91, 181, 271, 361]) {
    await db.sql`
      insert into history_entries (
        organisation_id, prompt_id, action, user_name, user_email, commit_sha, branch_name, created_at
      )
      select organisation_id, id, 'deployed', 'name', 'a@b.c', md5(n::text), 'main', now() - n * interval '1 minute'
      from prompts, generate_series(${from}::integer, ${from}::integer + 89) n
      where public_id = any(${tenants.map(({ prompt }) => prompt)}::text[])
      order by md5(n::text || id)`
  }
  await db.sql`update prompts set history_count = 450 where history_count = 0`
  await db.sql.script('analyze history_entries')
  const prompt = await requirePrompt(db.sql, tenants[0]?.prompt as string)
  const read = await countRowsRead(async (sql) => {
    const page = await selectPage(sql, prompt, { offset: 0, size: 25, since: '-infinity', until: 'infinity' })
    expect(page?.entries.length).toBe(25)
  })
  expect(read).toBe(25)
})
