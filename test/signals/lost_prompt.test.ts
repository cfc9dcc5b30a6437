// After a failover that lost changes, the row id that a replica remembers may be that of another organisation's prompt.
import { beforeEach, expect, test } from 'bun:test'
import { monthOf } from '../../src/lib/months.ts'
import { scopes } from '../../src/lib/scopes.ts'
import { requirePrompt } from '../../src/prompts/find.ts'
import { importSignals } from '../../src/signals/import.ts'
import { parseLines } from '../../src/signals/import_lines.ts'
import { writeSignals } from '../../src/signals/store.ts'
import { type Answer, errorOf } from '../client.ts'
import { createBrowserKey, usedBy } from '../keys/pages.ts'
import { entry } from '../service.ts'
import { useAdmin, useNewTenant, useService } from '../use.ts'
import { postBatch } from './fixtures.ts'

const service = useService()
const tenant = useNewTenant(service, 1_000)
const other = useNewTenant(service, 1_000)

const pathTo = (rest: string) => `/prompts/${tenant.prompt}/${rest}`

const admin = useAdmin(service, tenant, beforeEach)

const signal = { value: 'positive' }
const writes: [string, () => Promise<Answer>][] = [
  ['a signal', () => service.postSignal(tenant.prompt, tenant.key)],
  ['a keyed signal', () => service.post(pathTo('signals'), tenant.key, signal, { 'idempotency-key': 'a' })],
  ['a batch', () => postBatch(service, tenant, [signal])],
  ['a history entry', () => service.post(pathTo('history'), tenant.key, entry())],
  [
    'a batch of history entries',
    () => service.post('/history/batch', tenant.key, { entries: [{ prompt_id: tenant.prompt, ...entry() }] }),
  ],
  ['a new name', () => service.patch(`/prompts/${tenant.prompt}`, admin.key, { name: 'New' })],
]

test.each(writes)('%s for a prompt whose row id is that of another one now is a 404', async (_, write) => {
  const { db, clock } = service.services
  const prompt = await requirePrompt(db.sql, tenant.prompt)
  expect((await service.postSignal(tenant.prompt, tenant.key)).status).toBe(201)
  await db.sql`update prompts set public_id = ${`${tenant.prompt}x`}, name = 'Other' where id = ${prompt.id}`
  const unknown = errorOf(await service.postSignal('pmt_unknown', tenant.key))
  expect(errorOf(await write())).toEqual({ ...unknown, status: 404 })
  const lines = async function* () {
    yield '{"value":"positive","created_at":"2026-01-01T00:00:00Z"}'
  }
  const read = () => parseLines(lines(), clock.now())
  const importing = importSignals(db, clock.now(), service.services.rollup, prompt, read, () => {})
  await expect(importing).rejects.toMatchObject({ code: 'not_found' })
  const [rows] = await db.sql`
    select
      (select count(*) from signals where prompt_id = p.id) as signals,
      (select count(*) from history_entries where prompt_id = p.id) as entries, p.name
    from prompts p
    where p.id = ${prompt.id}`
  expect(rows).toEqual({ signals: 1, entries: 0, name: 'Other' })
})

test('of a batch, only the signals of the lost prompt are missing', async () => {
  const { db } = service.services
  await service.postSignal(tenant.prompt, tenant.key)
  await db.sql`update prompts set public_id = ${`${tenant.prompt}x`} where public_id = ${tenant.prompt}`
  const senders = Array.from({ length: 20 }, (_, number) => (number % 2 === 0 ? tenant : other))
  const answers = await Promise.all(senders.map(({ prompt, key }) => service.postSignal(prompt, key)))
  expect(answers.map(({ status }) => status)).toEqual(senders.map((sender) => (sender === tenant ? 404 : 201)))
  const usedOf = async (key: string) => (await service.get('/usage', key)).body.data.used
  expect([await usedOf(tenant.key), await usedOf(other.key)]).toEqual([1, 10])
})

test('rows of another organisation under the same prompt id are neither shown nor counted', async () => {
  const { db } = service.services
  const { id } = await requirePrompt(db.sql, tenant.prompt)
  const { organisationId } = await requirePrompt(db.sql, other.prompt)
  const change = entry({ commit_sha: 'aaaaaaa1', created_at: '2026-01-01T00:00:00Z' })
  const recorded = await service.post(pathTo('history'), tenant.key, change)
  const named = { ...signal, metadata: { commit_sha: 'aaaaaaa1' } }
  const signals = await postBatch(service, tenant, [named, { value: 'negative' }])
  const [{ id: own }] = signals.body.data
  const entryId = recorded.body.data.id
  const readAll = async () => {
    const paths = [
      ...['signals', 'signals?value=positive', 'signals/export', 'stats', 'stats?by=metadata.commit_sha', 'history'],
      ...['history?action=deployed', `history/${entryId}/diff`, 'impact', `impact/${entryId}/days`],
      'compare?base=aaaaaaa&head=bbbbbbb',
    ]
    const ofAll = [
      '/usage',
      '/changes',
      '/impact',
      '/impact?sort=rate',
      '/signals/export',
      `/signals/export?after=${own}`,
    ]
    const answers: Answer[] = []
    for (const path of [...paths.map(pathTo), ...ofAll]) answers.push(await service.get(path, tenant.key))
    return answers.map(({ status, text }) => ({ status, text: text.replace(/"sorted_at":"[^"]*"/, '') }))
  }
  const before = await readAll()
  expect(before.map(({ status }) => status)).toEqual(before.map(() => 200))
  await db.sql.script(`
    insert into signals (organisation_id, prompt_id, value, metadata, created_at)
    select ${organisationId}, ${id}, 'negative', '{"commit_sha": "aaaaaaa1"}', now() - n * interval '1 minute'
    from generate_series(0, 9) n;
    insert into history_entries (
      organisation_id, prompt_id, action, user_name, user_email, commit_sha, branch_name, created_at, is_change
    )
    values (${organisationId}, ${id}, 'deployed', 'x', 'x@example.com', 'bbbbbbb2', 'main', now(), true);
    insert into history_ranks (organisation_id, prompt_id, created_at, entry_id, rank)
    values (${organisationId}, ${id}, '2026-01-02', 0, 100);
    insert into signal_counts (organisation_id, prompt_id, minutes, start, positive, negative)
    values (${organisationId}, ${id}, 1440, date_trunc('day', now()), 7, 7);
    insert into signal_watermarks values (${organisationId}, ${id}, 1000000);
    insert into merged_commits values (${organisationId}, ${id}, 'main', 'ccccccc3', 'ccccccc3');
    insert into removed_entries values (${organisationId}, ${id}, 'ddddddd4', 'deployed', 'main', null);
    update prompts set history_version = default where id = ${id}`)
  expect(await readAll()).toEqual(before)
  await db.sql`select roll_up_signals(organisation_id, id, 100) from prompts where id = ${id}`
  expect(await readAll()).toEqual(before)
  const foreign = await db.sql<{ id: string }>`select id::text from signals where organisation_id = ${organisationId}`
  for (const row of foreign) {
    expect((await service.delete(pathTo(`signals/${row.id}`), admin.key)).status).toBe(404)
  }
  // Nor do they say that an entry is known, covered by a merge, or removed.
  const commits = ['bbbbbbb2', 'ccccccc3', 'ddddddd4']
  const entries = commits.map((commit_sha) => ({ prompt_id: tenant.prompt, ...entry({ commit_sha }) }))
  const batch = await service.post('/history/batch', tenant.key, { entries })
  expect(batch.body.data.outcomes).toEqual(['added', 'added', 'added'])
})

test('a signal is not counted for the browser key of another organisation that has the row id of its key now', async () => {
  const { db, clock } = service.services
  const { id } = await createBrowserKey(service, (await service.createKey(other, [...scopes])).key)
  const [row] = await db.sql<{ id: number }>`select id from api_keys where public_id = ${id}`
  const prompt = await requirePrompt(db.sql, tenant.prompt)
  const createdAt = clock.now()
  const written = { prompt, value: 'positive' as const, metadata: null, createdAt, idempotencyKey: null }
  const browserKey = { id: row?.id as number, monthlyLimit: null }
  const writing = writeSignals(db.sql, [{ ...written, month: monthOf(createdAt), browserKey }])
  // `rejects` blocks the messages of the embedded engine's thread.
  expect(await writing.catch((error) => error)).toMatchObject({ code: '23503' })
  expect(await usedBy(service, id)).toBe(0)
})
