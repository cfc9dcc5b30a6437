// What is erased by a caller, by a purge of an operator, and by the retention of an organisation.
import { beforeEach, expect, test } from 'bun:test'
import type { Sql } from '../../src/db/client.ts'
import { setRetention } from '../../src/orgs/manage.ts'
import { requirePrompt } from '../../src/prompts/find.ts'
import { createRetentions, purgeSignals } from '../../src/signals/erase.ts'
import { errorOf } from '../client.ts'
import { engine } from '../harness.ts'
import { during, rejectionOf, untilLocked } from '../program.ts'
import { useAdmin, useNewTenant, useService } from '../use.ts'
import { countOf, createPrunings, fillEvery, fillPrompts, organisationIdOf } from './fixtures.ts'

const service = useService()
beforeEach(async () => {
  service.clock.set('2026-11-20T12:00:00.000Z')
  // A round of retentions goes through all organisations.
  await service.services.db.sql`update organisations set retention_days = null`
})
const tenant = useNewTenant(service, 100_000)
const admin = useAdmin(service, tenant, beforeEach)

const erase = (prompt: string, id: unknown) => service.delete(`/prompts/${prompt}/signals/${id}`, admin.key)

async function post(headers: Record<string, string> = {}): Promise<number> {
  const { body } = await service.post(`/prompts/${tenant.prompt}/signals`, tenant.key, { value: 'positive' }, headers)
  return body.data.id
}

const stats = async () =>
  (await service.get(`/prompts/${tenant.prompt}/stats?since=2020-01-01&interval=month`, admin.key)).body.totals.total

const used = async () => (await service.get('/usage', admin.key)).body.data.used

const lastAudit = async () => (await service.get('/audit?limit=1', admin.key)).body.data[0]

const listed = async (): Promise<number[]> =>
  (await service.get(`/prompts/${tenant.prompt}/signals`, admin.key)).body.data.map(({ id }: { id: number }) => id)

const fill = (count: number, prompt = tenant.prompt, from = '2026-10-01T00:00:00Z') =>
  fillEvery(service, prompt, from, count)

const endOfOctober = new Date('2026-11-01T00:00:00Z')

async function purge(
  before = endOfOctober,
  { ofAllPrompts = false, onProgress = (_: number) => {}, db = service.services.db } = {},
) {
  const organisationId = await organisationIdOf(service, tenant)
  const prompt = ofAllPrompts ? null : await requirePrompt(db.sql, tenant.prompt)
  const source = { organisationId, prompt, publicId: ofAllPrompts ? tenant.org : tenant.prompt }
  return purgeSignals(db, service.clock, source, before, onProgress)
}

test('an erased signal is gone from the list and the counts, not from the month, and the audit log says who did it', async () => {
  const ids = [await post(), await post(), await post()]
  expect(await stats()).toBe(3)
  const { status, body } = await erase(tenant.prompt, ids[1])
  expect([status, body]).toEqual([200, { data: { id: ids[1] } }])
  expect(await listed()).toEqual([ids[2], ids[0]] as number[])
  expect([await stats(), await used()]).toEqual([2, 3])
  const change = { actor: admin.id, action: 'signal.erased', subject: tenant.prompt, details: { signal: ids[1] } }
  expect(await lastAudit()).toMatchObject(change)
  expect((await erase(tenant.prompt, ids[1])).status).toBe(404)
})

test('what is not a signal of the prompt is a 404 like any other, and nothing is erased', async () => {
  const other = await service.createTenant(10)
  const { body } = await service.postSignal(other.prompt, other.key)
  const own = await post()
  const second = await service.createPrompt(tenant, 'second')
  const unknown = errorOf(await erase(tenant.prompt, 0))
  expect(unknown.status).toBe(404)
  for (const answer of [
    await erase(tenant.prompt, body.data.id),
    await erase(other.prompt, body.data.id),
    await erase(second, own),
    ...(await Promise.all(['x', '1.5', '-1', '99999999999999999999', '%00'].map((id) => erase(tenant.prompt, id)))),
  ]) {
    expect(errorOf(answer)).toEqual(unknown)
  }
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
  const details = { before: '2026-10-01T20:00:00.000Z' }
  expect(await lastAudit()).toMatchObject({ actor: 'cli', action: 'signals.purged', subject: tenant.prompt, details })
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
  let posted = 0
  const erased = await during(purge(), async () => {
    await post()
    await stats()
    posted += 1
  })
  expect([erased, await stats(), await used()]).toEqual([3_000, posted, posted])
})

const retain = (days: number | null, org = tenant.org) => setRetention(service.services.db, service.clock, org, days)

const apply = async (more: Partial<Parameters<typeof createRetentions>[1]> = {}, db = service.services.db) =>
  createRetentions(db, { isStopping: () => false, onErased() {}, ...more })(service.clock.now())

const expectRows = async (rows: number, of = tenant) => expect((await countOf(service, of)).rows).toBe(rows)

test('a retention erases older signals of the organisations that have one', async () => {
  const other = await service.createTenant(10)
  await retain(30)
  // The last instant that is kept is 30 days ago.
  for (const { prompt } of [tenant, other]) await fill(4, prompt, '2026-10-21T11:58:00Z')
  await apply()
  await expectRows(2)
  await expectRows(4, other)
  await retain(null)
  service.clock.set('2026-12-31T12:00:00.000Z')
  await apply()
  await expectRows(2)
})

test('a round skips while another one runs, and stops between two steps', async () => {
  await retain(30)
  await fill(1_001)
  // The embedded engine has one connection, and thus one round at a time.
  if (engine === 'postgres') {
    await service.services.db.transaction(async (sql) => {
      await sql`select pg_advisory_xact_lock(5168, 0)`
      await apply()
    })
    await expectRows(1_001)
  }
  const isStopping = [false, true]
  await apply({ isStopping: () => isStopping.shift() as boolean })
  await expectRows(501)
  await apply()
  await expectRows(0)
})

test('a retention that is changed during a round erases nothing more', async () => {
  const { db } = service.services
  await retain(30)
  await fill(1_001)
  let changed: Promise<unknown> | undefined
  const onErased = () => {
    changed ??= retain(null)
  }
  // The next step begins once the change is made.
  const transaction: typeof db.transaction = async (...step) => {
    await changed
    return db.transaction(...step)
  }
  await apply({ onErased }, { ...db, transaction })
  await expectRows(501)
})

test('an organisation whose signals cannot be erased does not keep the others from it', async () => {
  const { db } = service.services
  const failing = await organisationIdOf(service, tenant)
  const other = await service.createTenant(10)
  for (const { org, prompt } of [tenant, other]) {
    await retain(30, org)
    await fill(2, prompt)
  }
  const transaction: typeof db.transaction = (work, request, isolation) =>
    request?.tenant === failing ? Promise.reject(new Error('too slow')) : db.transaction(work, request, isolation)
  expect(await rejectionOf(apply({}, { ...db, transaction }))).toBe('too slow')
  await expectRows(2)
  await expectRows(0, other)
})

test('a service applies the retentions at its intervals, until it stops', async () => {
  const { drain, prune } = createPrunings(service)
  service.clock.reset()
  await retain(30)
  await fill(2)
  await prune()
  await expectRows(0)
  await fill(2)
  await drain.run(0)
  await prune()
  await expectRows(2)
})
