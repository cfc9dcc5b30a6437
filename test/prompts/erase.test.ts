import { expect, test } from 'bun:test'
import type { Sql } from '../../src/db/client.ts'
import { recordHistoryBatch } from '../../src/history/batch.ts'
import type { HistoryBatch } from '../../src/history/schema_batch.ts'
import { createOverview } from '../../src/impact/overview.ts'
import { overviewParams } from '../../src/impact/schema.ts'
import { setStoreText } from '../../src/orgs/manage.ts'
import { erasePrompt } from '../../src/prompts/erase.ts'
import { requirePrompt } from '../../src/prompts/find.ts'
import { eraseLastSignals } from '../../src/signals/erase.ts'
import { createHook, type Hook, paths } from '../github/hook.ts'
import { engine } from '../harness.ts'
import { during, eventually, rejectionOf, untilLocked } from '../program.ts'
import { entry } from '../service.ts'
import { countOf, fillEvery, postBatch, startReplica } from '../signals/fixtures.ts'
import { useService } from '../use.ts'

const service = useService()

/** A prompt with rows in every table that has rows of prompts, beside one with the same text. */
async function createFull(): Promise<Hook & { prompt: string; id: number }> {
  const { db, clock } = service.services
  const hook = await createHook(service)
  const { tenant, prompts } = hook
  await setStoreText(db, clock, tenant.org, true)
  const { id, organisationId } = await requirePrompt(db.sql, prompts.greeting)
  const record = (entries: HistoryBatch['entries']) =>
    recordHistoryBatch(db, clock, organisationId, { entries }, (one) => requirePrompt(db.sql, one))
  const merge = { action: 'pr_merged', pr_number: 7, pr_url: 'https://example.com/7', covers: ['c0ffee0'] }
  const named = entry()
  await record([
    { prompt_id: prompts.greeting, ...named, text: 'of both' },
    { prompt_id: prompts.farewell, ...entry(), text: 'of both' },
    { prompt_id: prompts.greeting, ...entry(merge), text: 'of one' },
  ])
  for (const _ of [1, 2]) await record(Array.from({ length: 400 }, () => ({ prompt_id: prompts.greeting, ...entry() })))
  await hook.push({ branch: 'topic', commits: [{ modified: [paths.greeting] }] })
  await fillEvery(service, prompts.greeting, '2026-10-01T00:00:00Z', 1_203)
  const signal = { value: 'positive', metadata: { commit_sha: named.commit_sha } }
  await service.post(`/prompts/${prompts.greeting}/signals`, tenant.key, signal, { 'idempotency-key': 'a' })
  await db.sql`select roll_up_signals(organisation_id, id, 10000) from prompts where id = ${id}`
  await db.sql`insert into checked_prompts select organisation_id, id, 1, now() from prompts where id = ${id}`
  return { ...hook, prompt: prompts.greeting, id }
}

const erase = async (prompt: string, onProgress?: (erased: number) => void) => {
  const { db, clock } = service.services
  await erasePrompt(db, clock, await requirePrompt(db.sql, prompt), onProgress)
}

/** The tables that have rows of a prompt. */
async function tablesWith(promptId: number): Promise<string[]> {
  const { sql } = service.services.db
  const tables = await sql<{ name: string }>`
    select c.table_name as name from information_schema.columns c join information_schema.tables t using (table_name)
    where c.column_name = 'prompt_id' and c.table_schema = 'public' and t.table_type = 'BASE TABLE' order by 1`
  const found = tables.map(async ({ name }) => {
    const rows = await sql.dynamic(`select 1 from ${name} where prompt_id = $1::bigint limit 1`, [String(promptId)])
    return rows.length > 0 ? [name] : []
  })
  return (await Promise.all(found)).flat()
}

const textsOf = async ({ org }: { org: string }) =>
  service.services.db.sql<{ text: string }>`
    select h.text from history_entries h join organisations o on o.id = h.organisation_id
    where o.public_id = ${org} and h.text is not null`

const eventsOf = async ({ org }: { org: string }) =>
  service.services.db.sql<{ prompt: string }>`
    select e.data #>> '{prompt,id}' as prompt
    from webhook_events e join organisations o on o.id = e.organisation_id where o.public_id = ${org}`

test('an erased prompt leaves no row, but the month’s usage, the audit entry and what others have', async () => {
  const { db } = service.services
  const { prompt, id, tenant, prompts } = await createFull()
  const { key } = await service.createKey(tenant, ['keys:read', 'prompts:read'])
  expect(await tablesWith(id)).toEqual([
    ...['checked_prompts', 'github_affected_prompts', 'history_entries', 'history_ranks', 'idempotency_keys'],
    ...['merged_commits', 'signal_commit_counts', 'signal_counts', 'signal_watermarks', 'signals'],
  ])
  await db.sql`
    insert into webhook_events (public_id, organisation_id, type, dedup_key, data, created_at)
    select 'msg_' || p.public_id, organisation_id, 'change.live', p.public_id,
      jsonb_build_object('prompt', jsonb_build_object('id', p.public_id)), now()
    from prompts p where p.public_id in (${prompt}, ${prompts.farewell})`
  const steps: number[] = []
  await erase(prompt, (erased) => steps.push(erased))
  expect([steps.length > 1, steps.at(-1)]).toEqual([true, 1_204])
  expect(await tablesWith(id)).toEqual([])
  expect(await countOf(service, tenant)).toEqual({ rows: 0, used: 1 })
  expect(await eventsOf(tenant)).toEqual([{ prompt: prompts.farewell }])
  expect(await textsOf(tenant)).toEqual([{ text: 'of both' }])
  expect((await service.getHistory(prompts.farewell, tenant.key)).body.data).toHaveLength(1)
  const { body } = await service.get('/audit?limit=1', key)
  const details = { name: 'greeting' }
  expect(body.data).toMatchObject([{ actor: 'cli', action: 'prompt.erased', subject: prompt, details }])
  const listed = (await service.get('/prompts?archived=all', key)).body.data
  expect(listed.map((one: { id: string }) => one.id)).not.toContain(prompt)
})

test('an erasure that was interrupted is ended by another one', async () => {
  const { prompt, id } = await createFull()
  const interrupt = () => {
    throw new Error('interrupted')
  }
  expect(await rejectionOf(erase(prompt, interrupt))).toBe('interrupted')
  expect(await tablesWith(id)).toContain('signals')
  await erase(prompt)
  expect(await tablesWith(id)).toEqual([])
})

test('replicas that know a prompt record nothing once it is erased, and soon forget it', async () => {
  const { prompt, id, tenant, prompts } = await createFull()
  const replica = await startReplica(service)
  const write = async () => {
    const signal = { value: 'negative' }
    const answers = await Promise.all([
      ...[service, replica].map(({ postSignal }) => postSignal(prompt, tenant.key, signal)),
      ...[service, replica].map((client) => postBatch(client, { ...tenant, prompt }, [signal])),
      service.post(`/prompts/${prompt}/history`, tenant.key, entry()),
    ])
    return answers.map(({ status, body }) => body.data?.[0]?.status ?? status)
  }
  expect(new Set(await write())).toEqual(new Set([201]))
  await during(erase(prompt), write)
  expect(new Set(await write())).toEqual(new Set([404]))
  expect(await tablesWith(id)).toEqual([])
  const get = () => replica.get(`/prompts/${prompt}/signals`, tenant.key)
  await eventually(async () => (await get()).status, 404)
  expect((await replica.postSignal(prompts.farewell, tenant.key)).status).toBe(201)
})

// The embedded engine runs one transaction at a time.
if (engine === 'postgres') {
  test('an erasure also deletes what a rollup in flight adds', async () => {
    const { db } = service.services
    const { prompt: publicId } = await service.createTenant()
    const prompt = await requirePrompt(db.sql, publicId)
    const rollUpOne = async (sql: Sql, at: string) => {
      await fillEvery(service, publicId, at, 1)
      await sql`select roll_up_signals(${prompt.organisationId}, ${prompt.id}, 10)`
    }
    await rollUpOne(db.sql, '2026-10-01T00:00:00Z')
    let erasing: Promise<void> | undefined
    await db.transaction(async (sql) => {
      await rollUpOne(sql, '2026-10-02T00:00:00Z')
      erasing = db.transaction((other) => eraseLastSignals(other, prompt))
      erasing.catch(() => {})
      await untilLocked(db, 'watermark')
    })
    await erasing
    expect(await tablesWith(prompt.id)).toEqual([])
  })
}

test('a prompt that is erased while it is summarised is left out', async () => {
  const { db, clock, rollup } = service.services
  const { org, prompt } = await service.createTenant()
  const kept = await service.createPrompt({ org }, 'kept')
  const { organisationId } = await requirePrompt(db.sql, prompt)
  let isErased = false
  const heavyRead: typeof db.heavyRead = async (of, read) => {
    const result = await db.heavyRead(of, read)
    // The list is read first.
    if (!isErased) await erasePrompt(db, clock, await requirePrompt(db.sql, prompt))
    isErased = true
    return result
  }
  const readOverview = createOverview({ db: { ...db, heavyRead }, clock, rollup })
  const query = overviewParams.parse(new URLSearchParams())
  const { data } = await readOverview(organisationId, query, Number.POSITIVE_INFINITY)
  expect(data.map(({ prompt: { id } }) => id)).toEqual([kept])
})
