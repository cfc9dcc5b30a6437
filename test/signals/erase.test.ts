import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { createKey } from '../../src/keys/manage.ts'
import { createPrompt } from '../../src/prompts/manage.ts'
import { purgeSignals } from '../../src/signals/erase.ts'
import { startService, type Tenant, type TestService } from '../service.ts'
import { fillPrompts } from './exports.ts'

let service: TestService
let tenant: Tenant
let admin: string

beforeAll(async () => {
  service = await startService()
})

afterAll(() => service.close())

beforeEach(async () => {
  service.clock.set('2026-11-20T12:00:00.000Z')
  tenant = await service.createTenant(100_000)
  const { key } = await createKey(service.services.db, service.clock, {
    org: tenant.org,
    name: 'admin',
    scopes: ['signals:delete', 'signals:read', 'usage:read', 'keys:read'],
    expiresAt: null,
  })
  admin = key
})

const erase = (prompt: string, id: unknown, key = admin) =>
  service.call('DELETE', `/api/v1/prompts/${prompt}/signals/${id}`, { key })

async function post(headers: Record<string, string> = {}): Promise<number> {
  const path = `/api/v1/prompts/${tenant.prompt}/signals`
  const answer = await service.call('POST', path, { key: tenant.key, json: { value: 'positive' }, headers })
  return answer.body.data.id
}

const stats = async (prompt = tenant.prompt) =>
  (await service.call('GET', `/api/v1/prompts/${prompt}/stats?since=2020-01-01&interval=month`, { key: admin })).body
    .totals.total

const used = async () => (await service.call('GET', '/api/v1/usage', { key: admin })).body.data.used

const listed = async () =>
  (await service.call('GET', `/api/v1/prompts/${tenant.prompt}/signals`, { key: admin })).body.data.map(
    ({ id }: { id: number }) => id,
  )

/** Signals from before this month, which no caller can record: one a minute from a time on. */
async function fill(prompt: string, from: string, count: number): Promise<void> {
  await service.services.db.sql`
    insert into signals (organisation_id, prompt_id, value, created_at)
    select p.organisation_id, p.id, 'positive', ${from}::text::timestamptz + n * interval '1 minute'
    from prompts p, generate_series(0, ${count - 1}::int) n where p.public_id = ${prompt}`
}

async function idsOf({ org, prompt }: Tenant) {
  const [row] = await service.services.db.sql<{ organisationId: number; promptId: number }>`
    select p.id as "promptId", p.organisation_id as "organisationId"
    from prompts p join organisations o on o.id = p.organisation_id
    where p.public_id = ${prompt} and o.public_id = ${org}`
  return row as { organisationId: number; promptId: number }
}

test('an erased signal is gone from the list and the counts, not from the month, and the audit log says who did it', async () => {
  const ids = [await post(), await post(), await post()]
  expect(await stats()).toBe(3)
  const { status, body } = await erase(tenant.prompt, ids[1])
  expect([status, body]).toEqual([200, { data: { id: ids[1] as number } }])
  expect([await listed(), await stats(), await used()]).toEqual([[ids[2], ids[0]] as number[], 2, 3])
  const audit = await service.call('GET', '/api/v1/audit', { key: admin })
  expect(audit.body.data[0]).toMatchObject({
    action: 'signal.erased',
    subject: tenant.prompt,
    details: { signal: ids[1] },
  })
  expect((await erase(tenant.prompt, ids[1])).status).toBe(404)
})

test('what is not a signal of the prompt is a 404 like any other, and nothing is erased', async () => {
  const other = await service.createTenant(10)
  const { body } = await service.postSignal(other.prompt, other.key)
  const own = await post()
  const { db, clock } = service.services
  const second = await createPrompt(db, clock, { org: tenant.org, name: 'second', id: null })
  const answers = await Promise.all([
    erase(tenant.prompt, body.data.id),
    erase(other.prompt, body.data.id),
    erase(second.id, own),
    ...['0', 'x', '1.5', '-1', '99999999999999999999', '%00'].map((id) => erase(tenant.prompt, id)),
  ])
  const shown = answers.map(({ status, body: { error } }) => ({ status, error: { ...error, request_id: '' } }))
  expect(shown[0]?.status).toBe(404)
  expect(new Set(shown.map((one) => JSON.stringify(one))).size).toBe(1)
  expect(await listed()).toEqual([own])
})

test('a default key may not erase', async () => {
  const { status, body } = await erase(tenant.prompt, await post(), tenant.key)
  expect([status, body.error.scope]).toEqual([403, 'signals:delete'])
})

test('an erased signal is not replayed: its key records anew', async () => {
  const first = await post({ 'idempotency-key': 'a' })
  await erase(tenant.prompt, first)
  expect(await post({ 'idempotency-key': 'a' })).toBeGreaterThan(first)
  expect(await used()).toBe(2)
})

test('a purge erases what is older than a time, in many steps, and nothing else', async () => {
  const { db, clock } = service.services
  await fill(tenant.prompt, '2026-10-01T00:00:00Z', 1_203)
  const kept = await post()
  const before = new Date('2026-10-01T20:00:00Z')
  const { organisationId, promptId } = await idsOf(tenant)
  const steps: number[] = []
  const source = { organisationId, promptId, publicId: tenant.prompt }
  const erased = await purgeSignals(db, clock, source, before, (count) => steps.push(count))
  expect([erased, steps]).toEqual([1_200, [500, 1_000, 1_200]])
  expect([await stats(), (await listed()).at(0)]).toEqual([4, kept])
  expect(await purgeSignals(db, clock, source, before)).toBe(0)
  const { body } = await service.call('GET', '/api/v1/audit', { key: admin })
  expect(body.data[0]).toMatchObject({
    actor: 'cli',
    action: 'signals.purged',
    subject: tenant.prompt,
    details: { before: '2026-10-01T20:00:00.000Z' },
  })
})

test('a purge of an organisation reaches all its prompts, and no other’s', async () => {
  const { db, clock } = service.services
  const second = await createPrompt(db, clock, { org: tenant.org, name: 'second', id: null })
  const other = await service.createTenant(10)
  for (const prompt of [tenant.prompt, second.id, other.prompt]) await fill(prompt, '2026-10-01T00:00:00Z', 3)
  const { organisationId } = await idsOf(tenant)
  const source = { organisationId, promptId: null, publicId: tenant.org }
  expect(await purgeSignals(db, clock, source, new Date('2026-11-01T00:00:00Z'))).toBe(6)
  const { promptId } = await idsOf(other)
  const [row] = await db.sql`select count(*) as left from signals where prompt_id = ${promptId}`
  expect(row).toEqual({ left: 3 })
})

test('a purge of an organisation reaches more prompts than are looked up at once', async () => {
  const { db, clock } = service.services
  await fillPrompts(service, tenant.org, 205)
  const { organisationId } = await idsOf(tenant)
  const source = { organisationId, promptId: null, publicId: tenant.org }
  expect(await purgeSignals(db, clock, source, new Date('2026-11-01T00:00:00Z'))).toBe(205)
})

test('two purges at the same time erase each signal once', async () => {
  const { db, clock } = service.services
  await fill(tenant.prompt, '2026-10-01T00:00:00Z', 2_000)
  const { organisationId, promptId } = await idsOf(tenant)
  const source = { organisationId, promptId, publicId: tenant.prompt }
  const purge = () => purgeSignals(db, clock, source, new Date('2026-11-01T00:00:00Z'))
  const [one, two] = await Promise.all([purge(), purge()])
  expect((one as number) + (two as number)).toBe(2_000)
  expect(await stats()).toBe(0)
})

test('signals go on being recorded and counted rightly while a purge runs', async () => {
  const { db, clock } = service.services
  await fill(tenant.prompt, '2026-10-01T00:00:00Z', 3_000)
  const { organisationId, promptId } = await idsOf(tenant)
  const source = { organisationId, promptId, publicId: tenant.prompt }
  let settled = false
  const purging = purgeSignals(db, clock, source, new Date('2026-11-01T00:00:00Z')).finally(() => {
    settled = true
  })
  let posted = 0
  while (!settled) {
    await post()
    posted += 1
    await stats()
  }
  expect(await purging).toBe(3_000)
  expect([await stats(), await used()]).toEqual([posted, posted])
})
