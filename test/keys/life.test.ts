import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { listAudit } from '../../src/audit/list.ts'
import type { Db } from '../../src/db/client.ts'
import { setWebhook } from '../../src/github/webhook.ts'
import { changeKey, createKey, listKeys, revokeKey, rotateKey } from '../../src/keys/manage.ts'
import { presets } from '../../src/keys/schema.ts'
import { readAllPages } from '../../src/lib/cursor_page.ts'
import { requireOrganisation, resumeOrganisation, setPlan, suspendOrganisation } from '../../src/orgs/manage.ts'
import { eventually, rejectionOf } from '../program.ts'
import { startService, type Tenant, type TestService } from '../service.ts'

let service: TestService
let db: Db
let tenant: Tenant

beforeAll(async () => {
  service = await startService()
  db = service.services.db
})

beforeEach(async () => {
  service.clock.set(new Date().toISOString())
  tenant = await service.createTenant()
})

afterAll(() => service.close())

const hourMs = 3_600_000
const later = (ms: number) => new Date(service.clock.now().getTime() + ms)
const statusOf = async (key: string) => (await service.getHistory(tenant.prompt, key)).status
const organisationId = async () => (await requireOrganisation(db, tenant.org)).id

async function readAudit() {
  const id = await organisationId()
  const entries = await readAllPages((page) => listAudit(db, id, page))
  return entries.map(({ actor, action, subject, details }) => ({ actor, action, subject, details }))
}

test('a rotated key works until the overlap ends, and says what replaced it', async () => {
  const made = await rotateKey(db, service.clock, tenant.keyId, 2 * hourMs)
  expect(made).toMatchObject({ org: tenant.org, name: 'test', expires_at: null })
  expect([await statusOf(tenant.key), await statusOf(made.key)]).toEqual([200, 200])
  const { data } = await listKeys(db, await organisationId(), { limit: 100, cursor: null })
  expect(data).toMatchObject([
    { id: made.id, replaced_by: null, scopes: made.scopes },
    { id: tenant.keyId, replaced_by: made.id, expires_at: later(2 * hourMs), revoked_at: null },
  ])
  service.clock.set(later(2 * hourMs).toISOString())
  await eventually(async () => [await statusOf(tenant.key), await statusOf(made.key)], [401, 200])
})

test.each(['signals', 'keys'])(
  'a request of which half was sent before its key was revoked is rejected when it is whole: %s',
  async (what) => {
    const given = { org: tenant.org, name: 'leaked', expiresAt: null, scopes: presets.admin }
    const leaked = await createKey(db, service.clock, given)
    const [path, body] =
      what === 'keys'
        ? ['/api/v1/keys', { name: 'successor', preset: 'admin' }]
        : [`/api/v1/prompts/${tenant.prompt}/signals`, { value: 'positive' }]
    const text = JSON.stringify(body)
    const { hostname, port } = new URL(service.url)
    const socket = connect(Number(port), hostname)
    const answer = new Promise<string>((resolve) => socket.on('data', (bytes) => resolve(bytes.toString('latin1'))))
    socket.write(
      `POST ${path} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${leaked.key}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text.slice(0, 5)}`,
    )
    await eventually(async () => /http_requests_in_flight 1$/m.test(await service.services.metrics.text()), true)
    expect(await statusOf(leaked.key)).toBe(200)
    await revokeKey(db, service.clock, leaked.id)
    await eventually(() => statusOf(leaked.key), 401)
    await Bun.sleep(500)
    socket.write(text.slice(5))
    expect((await answer).split('\r\n')[0]).toBe('HTTP/1.1 401 Unauthorized')
    socket.destroy()
    const { data } = await listKeys(db, await organisationId(), { limit: 100, cursor: null })
    expect(data.map(({ name }) => name).sort()).toEqual(['leaked', 'test'])
    expect(
      (
        await db.sql<{ n: number }>`select count(*)::int as n from signals where prompt_id = (
      select id from prompts where public_id = ${tenant.prompt})`
      )[0]?.n,
    ).toBe(0)
  },
)

test('a rotation never lengthens the life of the old key, and the new one lives as long', async () => {
  const given = { org: tenant.org, name: 'short', expiresAt: later(hourMs) }
  const old = await createKey(db, service.clock, given)
  const made = await rotateKey(db, service.clock, old.id, 24 * hourMs)
  expect(made.expires_at).toEqual(later(hourMs))
  const { data } = await listKeys(db, await organisationId(), { limit: 100, cursor: null })
  expect(data.find(({ id }) => id === old.id)?.expires_at).toEqual(later(hourMs))
})

test('a key that expires at the end of all time is replaced by one that does, too', async () => {
  const expiresAt = new Date('9999-12-31T23:59:59.999Z')
  const old = await createKey(db, service.clock, { org: tenant.org, name: 'for ever', expiresAt })
  service.clock.set(later(hourMs).toISOString())
  expect((await rotateKey(db, service.clock, old.id, 0)).expires_at).toEqual(expiresAt)
})

test('a key that has ended, or was rotated before, is not rotated', async () => {
  const made = await rotateKey(db, service.clock, tenant.keyId, 0)
  expect(await rejectionOf(rotateKey(db, service.clock, tenant.keyId, 0))).toContain(
    `was rotated to ${made.id} already`,
  )
  const next = await rotateKey(db, service.clock, made.id, hourMs)
  await revokeKey(db, service.clock, next.id)
  expect(await rejectionOf(rotateKey(db, service.clock, next.id, hourMs))).toContain('has ended')
  expect(await rejectionOf(rotateKey(db, service.clock, 'key_none', 0))).toContain('There is no key key_none.')
})

test('of two rotations at once one makes a key', async () => {
  const results = await Promise.allSettled([1, 2].map(() => rotateKey(db, service.clock, tenant.keyId, hourMs)))
  expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  const { data } = await listKeys(db, await organisationId(), { limit: 100, cursor: null })
  expect(data).toHaveLength(2)
})

test('a suspended organisation is rejected, another is not, and a resumed one goes on with its data', async () => {
  const other = await service.createTenant()
  expect((await service.postSignal(tenant.prompt, tenant.key)).status).toBe(201)
  expect(await suspendOrganisation(db, service.clock, tenant.org)).toMatchObject({
    used: 1,
    suspended_at: service.clock.now(),
  })
  await eventually(() => statusOf(tenant.key), 401)
  expect((await service.postSignal(other.prompt, other.key)).status).toBe(201)
  expect(await resumeOrganisation(db, service.clock, tenant.org)).toMatchObject({ used: 1, suspended_at: null })
  await eventually(() => statusOf(tenant.key), 200)
})

test('every change is in the audit log, newest first, with who made it and without a secret', async () => {
  const made = await createKey(db, service.clock, { org: tenant.org, name: 'one', expiresAt: null })
  await changeKey(db, service.clock, made.id, { name: 'two', scopes: ['signals:write'] })
  const rotated = await rotateKey(db, service.clock, made.id, 0)
  await revokeKey(db, service.clock, rotated.id)
  await revokeKey(db, service.clock, rotated.id)
  await setPlan(db, service.clock, tenant.org, 'team', 5)
  const { secret } = await setWebhook(db, service.clock, tenant.org)
  await suspendOrganisation(db, service.clock, tenant.org)
  await suspendOrganisation(db, service.clock, tenant.org)
  await resumeOrganisation(db, service.clock, tenant.org)
  const entries = await readAudit()
  const change = { actor: 'cli', details: {} }
  expect(entries.filter(({ action }) => action !== 'prompt.created')).toMatchObject([
    { ...change, action: 'organisation.resumed', subject: tenant.org },
    { ...change, action: 'organisation.suspended', subject: tenant.org },
    { ...change, action: 'webhook.secret_set', subject: tenant.org },
    { ...change, action: 'plan.changed', subject: tenant.org, details: { plan: 'team', monthly_limit: 5 } },
    { ...change, action: 'key.revoked', subject: rotated.id },
    { ...change, action: 'key.rotated', subject: made.id, details: { replaced_by: rotated.id } },
    { ...change, action: 'key.updated', subject: made.id, details: { name: 'two', scopes: ['signals:write'] } },
    { ...change, action: 'key.created', subject: made.id, details: { name: 'one', expires_at: null } },
    { ...change, action: 'key.created', subject: tenant.keyId, details: { name: 'test' } },
  ])
  const text = JSON.stringify(entries)
  for (const hidden of [secret, made.key, rotated.key, tenant.key]) expect(text).not.toContain(hidden)
})

test('a change that fails leaves nothing in the audit log', async () => {
  const before = await readAudit()
  expect(await rejectionOf(rotateKey(db, service.clock, 'key_none', 0))).not.toBe('it did not reject')
  expect(await rejectionOf(changeKey(db, service.clock, tenant.keyId, { name: '' }))).not.toBe('it did not reject')
  expect(await readAudit()).toEqual(before)
})
