import { beforeEach, expect, test } from 'bun:test'
import type { Sql } from '../../src/db/client.ts'
import { requirePrompt } from '../../src/prompts/find.ts'
import { purgeSignals } from '../../src/signals/erase.ts'
import { engine } from '../harness.ts'
import { untilLocked } from '../program.ts'
import type { Tenant } from '../service.ts'
import { useService } from '../use.ts'
import { countOf, fillEvery, fillPrompts, organisationIdOf } from './fixtures.ts'

const service = useService()
let tenant: Tenant
let admin: string

beforeEach(async () => {
  service.clock.set('2026-11-20T12:00:00.000Z')
  tenant = await service.createTenant(100_000)
  admin = (await service.createKey(tenant, ['signals:delete', 'signals:read', 'usage:read', 'keys:read'])).key
})

const erase = (prompt: string, id: unknown, key = admin) => service.delete(`/prompts/${prompt}/signals/${id}`, key)

async function post(headers: Record<string, string> = {}): Promise<number> {
  const { body } = await service.post(`/prompts/${tenant.prompt}/signals`, tenant.key, { value: 'positive' }, headers)
  return body.data.id
}

const stats = async () =>
  (await service.get(`/prompts/${tenant.prompt}/stats?since=2020-01-01&interval=month`, admin)).body.totals.total

const used = async () => (await service.get('/usage', admin)).body.data.used

const listed = async (): Promise<number[]> =>
  (await service.get(`/prompts/${tenant.prompt}/signals`, admin)).body.data.map(({ id }: { id: number }) => id)

const fill = (count: number, prompt = tenant.prompt) => fillEvery(service, prompt, '2026-10-01T00:00:00Z', count)

const endOfOctober = new Date('2026-11-01T00:00:00Z')

async function purge(
  before = endOfOctober,
  { ofAllPrompts = false, onProgress = (_: number) => {}, db = service.services.db } = {},
) {
  const { clock } = service.services
  const organisationId = await organisationIdOf(service, tenant)
  const prompt = ofAllPrompts ? null : await requirePrompt(db.sql, tenant.prompt)
  const publicId = ofAllPrompts ? tenant.org : tenant.prompt
  return purgeSignals(db, clock, { organisationId, prompt, publicId }, before, onProgress)
}

test('an erased signal is gone from the list and the counts, not from the month, and the audit log says who did it', async () => {
  const ids = [await post(), await post(), await post()]
  expect(await stats()).toBe(3)
  const { status, body } = await erase(tenant.prompt, ids[1])
  expect(status).toBe(200)
  expect(body).toEqual({ data: { id: ids[1] as number } })
  expect(await listed()).toEqual([ids[2], ids[0]] as number[])
  expect(await stats()).toBe(2)
  expect(await used()).toBe(3)
  const audit = await service.get('/audit', admin)
  const details = { signal: ids[1] }
  expect(audit.body.data[0]).toMatchObject({ action: 'signal.erased', subject: tenant.prompt, details })
  expect((await erase(tenant.prompt, ids[1])).status).toBe(404)
})

test('what is not a signal of the prompt is a 404 like any other, and nothing is erased', async () => {
  const other = await service.createTenant(10)
  const { body } = await service.postSignal(other.prompt, other.key)
  const own = await post()
  const second = await service.createPrompt(tenant, 'second')
  const answers = await Promise.all([
    erase(tenant.prompt, body.data.id),
    erase(other.prompt, body.data.id),
    erase(second, own),
    ...['0', 'x', '1.5', '-1', '99999999999999999999', '%00'].map((id) => erase(tenant.prompt, id)),
  ])
  const shown = answers.map(({ status, body: { error } }) => ({ status, error: { ...error, request_id: '' } }))
  expect(shown[0]?.status).toBe(404)
  expect(new Set(shown.map((one) => JSON.stringify(one))).size).toBe(1)
  expect(await listed()).toEqual([own])
})

test('an erased signal is not replayed: its key records a new one', async () => {
  const first = await post({ 'idempotency-key': 'a' })
  await erase(tenant.prompt, first)
  expect(await post({ 'idempotency-key': 'a' })).toBeGreaterThan(first)
  expect(await used()).toBe(2)
})

// The embedded engine runs one transaction at a time.
if (engine === 'postgres') {
  test('a signal that is committed while its id is erased keeps its key, or loses it too', async () => {
    const { db } = service.services
    const { id, organisationId } = await requirePrompt(db.sql, tenant.prompt)
    const first = await post({ 'idempotency-key': 'first' })
    // Each write takes 1,000 ids.
    const ids = Array.from({ length: 10 }, (_, n) => String(first + n * 1_000))
    const { erasing } = await db.transaction(async (sql) => {
      await sql`select from idempotency_keys where organisation_id = ${organisationId} for update`
      const erasing = db.sql`select erase_signals(${organisationId}, ${id}, ${ids}::text[]::bigint[])`
      erasing.catch(() => {})
      await untilLocked(db, 'erase_signals')
      expect(ids).toContain(String(await post({ 'idempotency-key': 'second' })))
      return { erasing }
    })
    await erasing
    const [left] = await listed()
    const again = await post({ 'idempotency-key': 'second' })
    expect(await listed()).toEqual([left ?? again])
  })
}

test('a purge erases the signals older than a time, in many steps, and no others', async () => {
  await fill(1_203)
  const kept = await post()
  const before = new Date('2026-10-01T20:00:00Z')
  const steps: number[] = []
  expect(await purge(before, { onProgress: (count) => steps.push(count) })).toBe(1_200)
  expect(steps[0]).toBe(500)
  expect(steps.at(-1)).toBe(1_200)
  expect(await stats()).toBe(4)
  expect((await listed()).at(0)).toBe(kept)
  expect(await purge(before)).toBe(0)
  const { body } = await service.get('/audit', admin)
  const details = { before: '2026-10-01T20:00:00.000Z' }
  expect(body.data[0]).toMatchObject({ actor: 'cli', action: 'signals.purged', subject: tenant.prompt, details })
})

test('a purge of an organisation reaches all its prompts, over several pages of them, and no other’s', async () => {
  const other = await service.createTenant(10)
  await fillPrompts(service, tenant.org, 205)
  for (const { prompt } of [tenant, other]) await fill(3, prompt)
  expect(await purge(endOfOctober, { ofAllPrompts: true })).toBe(208)
  expect(await countOf(service, other)).toEqual({ rows: 3, used: 0 })
})

test('a purge goes on until nothing is left, also when a crash brings back what was erased', async () => {
  const { db } = service.services
  await fill(10)
  let isLost = false
  const run = async (text: TemplateStringsArray, ...values: unknown[]) => {
    // The steps before the first flush were not durable.
    if (!isLost && text.join().includes('pg_logical_emit_message')) {
      isLost = true
      await fill(3)
    }
    return db.sql(text, ...values)
  }
  expect(await purge(endOfOctober, { db: { ...db, sql: Object.assign(run, db.sql) as Sql } })).toBe(13)
  expect(isLost).toBe(true)
  expect(await stats()).toBe(0)
})

test('two purges at the same time erase each signal once', async () => {
  await fill(2_000)
  const [one, two] = await Promise.all([purge(), purge()])
  expect(one + two).toBe(2_000)
  expect(await stats()).toBe(0)
})

test('signals are recorded and counted correctly while a purge runs', async () => {
  await fill(3_000)
  let isOver = false
  const purging = purge().finally(() => {
    isOver = true
  })
  let posted = 0
  for (; !isOver; posted += 1) {
    await post()
    await stats()
  }
  expect(await purging).toBe(3_000)
  expect(await stats()).toBe(posted)
  expect(await used()).toBe(posted)
})
