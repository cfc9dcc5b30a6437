import { expect, test } from 'bun:test'
import { recordHistoryBatch } from '../../src/history/batch.ts'
import { requirePrompt } from '../../src/prompts/find.ts'
import { createPastRecorder } from '../../src/signals/import.ts'
import { deployed, rollUp } from '../impact/history.ts'
import { readRows } from '../rows_read.ts'
import { entry } from '../service.ts'
import { fillEvery } from '../signals/fixtures.ts'
import { useOwnService } from '../use.ts'

/** What other tests leave to do in the background would be counted too. On a busy machine, filling tables takes long. */
const service = useOwnService({ queryTimeoutMs: 20_000 })

const changes = 30
const madeUp = 1_000
const hour = 3_600_000
/** Just after a full hour, so that each change begins within a quarter, whose signals are read. */
const start = Date.UTC(2026, 9, 1, 0, 0, 0, 1)
const commitOf = (n: number): string => new Bun.CryptoHasher('sha1').update(`change ${n}`).digest('hex')

test.each([
  ['a hash', commitOf, ''],
  ['a name that begins like theirs', (n: number) => `release-${n}`, 'release-1'],
])('signals that each name another commit do not make impact slow: %s', async (_, nameOf, madeUpStart) => {
  const { db } = service.services
  const { prompt, key } = await service.createTenant()
  await service.addHistory(
    prompt,
    Array.from({ length: changes }, (_, n) => deployed(nameOf(n), new Date(start + n * hour).toISOString())),
  )
  await db.sql`
    insert into signals (organisation_id, prompt_id, value, metadata, created_at)
    select p.organisation_id, p.id, 'positive',
      jsonb_build_object('commit_sha', ${madeUpStart}::text || encode(sha256(n::text::bytea), 'hex')),
      ${new Date(start)}::timestamptz + n * interval '108 seconds'
    from prompts p, generate_series(0, ${madeUp - 1}::integer) n
    where p.public_id = ${prompt}`
  await rollUp(service, prompt)
  await db.sql.script('analyze')
  for (const path of [`/api/v1/prompts/${prompt}/impact?limit=100`, '/api/v1/impact']) {
    const before = await readRows(db, 'index')
    const { body } = await service.call('GET', path, { key })
    const after = await readRows(db, 'index')
    const rowsOf = (table: string) => (after.get(table) ?? 0) - (before.get(table) ?? 0)
    expect(rowsOf('signal_commit_counts'), path).toBeLessThan(10 * changes)
    expect(rowsOf('history_entries'), path).toBeLessThan(25 * changes)
    expect(rowsOf('signals'), path).toBeLessThan(20 * changes)
    if (body.data.length === changes)
      expect(body.data.reduce((sum: number, one: { signals: { total: number } }) => sum + one.signals.total, 0)).toBe(
        madeUp,
      )
  }
})

test('a range of time long ago is found by the index, without a walk over later signals', async () => {
  const tenant = await service.createTenant()
  await fillEvery(service, tenant.prompt, '2026-11-01T00:00:00Z', 20_000, 1)
  const { db } = service.services
  await rollUp(service, tenant.prompt)
  await db.sql`analyze signals`
  const query = '?until=2026-11-01T00:00:10Z&value=positive'
  const list = () => service.get(`/prompts/${tenant.prompt}/signals${query}`, tenant.key)
  expect((await list()).body.data).toHaveLength(10)
  const before = await readRows(db, 'index')
  expect((await list()).body.data).toHaveLength(10)
  const after = await readRows(db, 'index')
  expect((after.get('signals') as number) - (before.get('signals') as number)).toBeLessThan(100)
})

test('a page of a branch reads the entries of that branch only', async () => {
  const { db } = service.services
  const own = await service.createTenant()
  await db.sql`
    insert into history_entries (
      organisation_id, prompt_id, action, user_name, user_email, commit_sha, branch_name, created_at)
    select p.organisation_id, p.id, 'deployed', 'Ada', 'ada@example.com', n, case when n <= 5 then 'rare' else 'main' end,
      now() - n * interval '1 minute'
    from prompts p, generate_series(1, 3000) n
    where p.public_id = ${own.prompt}`
  await db.sql.script('analyze history_entries')
  const before = await readRows(db, 'index')
  const { body } = await service.getHistory(own.prompt, own.key, '?branch=rare')
  const after = await readRows(db, 'index')
  expect(body.pagination.total_count).toBe(5)
  expect((after.get('history_entries') ?? 0) - (before.get('history_entries') ?? 0)).toBeLessThan(100)
})

test('a batch does not read all commits that merges have brought', async () => {
  const { db, clock } = service.services
  const prompt = await requirePrompt(db.sql, (await service.createTenant()).prompt)
  const { id, organisationId } = prompt
  await db.sql`
    insert into merged_commits (organisation_id, prompt_id, branch_name, commit_sha, merge_sha)
    select ${organisationId}::bigint, ${id}::bigint, 'main', encode(sha256(n::text::bytea), 'hex'), 'c0ffee1'
    from generate_series(1, 2000) n`
  await db.sql.script('analyze merged_commits')
  const entries = Array.from({ length: 100 }, () => ({ prompt_id: prompt.publicId, ...entry() }))
  const before = await readRows(db, 'index')
  const { outcomes } = await recordHistoryBatch(db, clock, organisationId, { entries }, () => prompt)
  const after = await readRows(db, 'index')
  expect(outcomes).toEqual(entries.map(() => 'added'))
  expect((after.get('merged_commits') ?? 0) - (before.get('merged_commits') ?? 0)).toBeLessThan(500)
})

test('a signal does not read the other prompts of its organisation', async () => {
  const { db } = service.services
  const { prompt, key } = await service.createTenant()
  await db.sql`
    insert into prompts (public_id, organisation_id, name, created_at)
    select 'pmt_' || prompt.organisation_id || n, prompt.organisation_id, 'Other', now()
    from prompts prompt, generate_series(1, 40) n
    where prompt.public_id = ${prompt}`
  const before = await readRows(db, 'index')
  for (let round = 0; round < 20; round += 1) expect((await service.postSignal(prompt, key)).status).toBe(201)
  const after = await readRows(db, 'index')
  expect((after.get('prompts') ?? 0) - (before.get('prompts') ?? 0)).toBeLessThan(100)
})

test('an import of equal signals does not count the earlier ones again with every write', async () => {
  const { prompt: publicId } = await service.createTenant()
  const { db } = service.services
  const prompt = await requirePrompt(db.sql, publicId)
  const record = createPastRecorder(db, new Date(), prompt, true)
  const batch = Array.from({ length: 100 }, () => {
    return { value: 'positive' as const, metadata: null, createdAt: new Date(start) }
  })
  const before = await readRows(db, 'index')
  const writes = 20
  for (let n = 0; n < writes; n += 1) {
    expect(await record(batch)).toEqual({ recorded: batch.length, known: 0, refused: 0 })
  }
  const after = await readRows(db, 'index')
  expect((after.get('signals') ?? 0) - (before.get('signals') ?? 0)).toBeLessThan(3 * writes * batch.length)
})

test('the signal with a subject is found by the index, however many others the prompt has', async () => {
  const { prompt, key } = await service.createTenant()
  const { db } = service.services
  const vote = () => service.postSignal(prompt, key, { value: 'positive', subject: 'a1' })
  await vote()
  await db.sql`
    insert into signals (organisation_id, prompt_id, value, created_at, subject)
    select p.organisation_id, p.id, 'positive', now() - n * interval '1 second', case when n % 2 = 0 then 's' || n end
    from prompts p, generate_series(1, 5000) n where p.public_id = ${prompt}`
  await db.sql`analyze signals`
  const before = await readRows(db, 'index')
  for (let n = 0; n < 10; n += 1) expect((await vote()).status).toBe(200)
  const after = await readRows(db, 'index')
  expect((after.get('signals') ?? 0) - (before.get('signals') ?? 0)).toBeLessThan(200)
})

test('votes that change together change each count once', async () => {
  const { db } = service.services
  const { prompt, key } = await service.createTenant(1_000)
  const subjects = Array.from({ length: 200 }, (_, n) => `a${n}`)
  const vote = (value: 'positive' | 'negative', about: string[]) =>
    service.post(`/prompts/${prompt}/signals/batch`, key, { signals: about.map((subject) => ({ value, subject })) })
  await vote('positive', subjects)
  await rollUp(service, prompt)
  const countChanges = async () => {
    await readRows(db, 'index')
    const [row] = await db.sql<{ changes: number }>`
      select (n_tup_upd + n_tup_ins)::integer as changes from pg_stat_user_tables where relname = 'signal_counts'`
    return row?.changes as number
  }
  const before = await countChanges()
  expect((await vote('negative', [...subjects, ...Array(200).fill('a0')])).body.data[399]).toMatchObject({
    status: 200,
  })
  const changed = await countChanges()
  expect(changed - before).toBeLessThan(20)
  await vote('negative', subjects)
  expect(await countChanges()).toBe(changed)
  const { body } = await service.get(`/prompts/${prompt}/stats`, key)
  expect(body.totals).toMatchObject({ positive: 0, negative: 200 })
})

test('votes that change together do not read the counts of the time between them', async () => {
  const { db } = service.services
  const { prompt, key } = await service.createTenant()
  await db.sql`
    insert into signals (organisation_id, prompt_id, value, created_at, subject)
    select p.organisation_id, p.id, 'positive', now() - n * interval '20 minutes', 'a' || n
    from prompts p, generate_series(0, 5000) n where p.public_id = ${prompt}`
  await rollUp(service, prompt)
  await db.sql.script('analyze')
  const signals = ['a0', 'a5000'].map((subject) => ({ value: 'negative', subject }))
  const before = await readRows(db, 'index')
  const { body } = await service.post(`/prompts/${prompt}/signals/batch`, key, { signals })
  const after = await readRows(db, 'index')
  expect(body.data).toMatchObject([{ replaced: true }, { replaced: true }])
  expect((after.get('signal_counts') ?? 0) - (before.get('signal_counts') ?? 0)).toBeLessThan(100)
})
