import { beforeEach, expect, test } from 'bun:test'
import { listAudit, operator } from '../../src/audit/record.ts'
import { setWebhook } from '../../src/github/settings.ts'
import type { KeyChange } from '../../src/keys/given.ts'
import { changeKey, listKeys, revokeKey, rotateKey } from '../../src/keys/manage.ts'
import { requireOrganisation, setPlan, setRetention, setSuspended } from '../../src/orgs/manage.ts'
import { eventually, rejectionOf } from '../program.ts'
import { useNewTenant, useOwnService } from '../use.ts'

const service = useOwnService()
beforeEach(() => service.clock.set(new Date().toISOString()))
const tenant = useNewTenant(service)

const hourMs = 3_600_000
const wholePage = { limit: 100, cursor: null }
const later = (ms: number) => new Date(service.clock.now().getTime() + ms)
const statusOf = async (key: string) => (await service.getHistory(tenant.prompt, key)).status
const organisationId = async () => (await requireOrganisation(service.services.db, tenant.org)).organisationId
const keys = async () => (await listKeys(service.services.db, await organisationId(), wholePage)).data
const rotate = (id: string, overlapMs: number) => rotateKey(service.services.db, service.clock, id, overlapMs, operator)
const revoke = (id: string) => revokeKey(service.services.db, service.clock, id)

async function readAudit() {
  const { data } = await listAudit(service.services.db, await organisationId(), wholePage)
  return data.map(({ actor, action, subject, details }) => ({ actor, action, subject, details }))
}

test('a rotated key works until the overlap ends, and says what replaced it', async () => {
  const made = await rotate(tenant.keyId, 2 * hourMs)
  expect(made).toMatchObject({ org: tenant.org, name: 'test', expires_at: null })
  expect(await statusOf(tenant.key)).toBe(200)
  expect(await keys()).toMatchObject([
    { id: made.id, replaced_by: null, scopes: made.scopes },
    { id: tenant.keyId, replaced_by: made.id, expires_at: later(2 * hourMs), revoked_at: null },
  ])
  service.clock.set(later(2 * hourMs).toISOString())
  expect(await statusOf(tenant.key)).toBe(401)
  expect(await statusOf(made.key)).toBe(200)
})

const change = (id: string, given: KeyChange) => changeKey(service.services.db, service.clock, id, given)

test('a key that was rotated stays ended, and its end can only come earlier', async () => {
  const made = await rotate(tenant.keyId, hourMs)
  for (const expires_at of [null, later(2 * hourMs)]) {
    const rejection = await rejectionOf(change(tenant.keyId, { expires_at }))
    expect(rejection).toContain(`was rotated to ${made.id}`)
  }
  expect(await change(tenant.keyId, { name: 'old', expires_at: later(1_000) })).toMatchObject({ name: 'old' })
  service.clock.set(later(2_000).toISOString())
  expect(await rejectionOf(change(tenant.keyId, { expires_at: later(hourMs) }))).toContain('was rotated to')
  expect(await statusOf(tenant.key)).toBe(401)
})

test('a rotation never lengthens the life of the old key, and the new one lives as long', async () => {
  const old = await service.createKey(tenant, undefined, { expires_at: later(hourMs) })
  const made = await rotate(old.id, 24 * hourMs)
  expect(made.expires_at).toEqual(later(hourMs))
  expect((await keys()).find(({ id }) => id === old.id)?.expires_at).toEqual(later(hourMs))
})

test('a key that expires at the end of all time is replaced by one that does, too', async () => {
  const expires_at = new Date('9999-12-31T23:59:59.999Z')
  const old = await service.createKey(tenant, undefined, { expires_at })
  service.clock.set(later(hourMs).toISOString())
  expect((await rotate(old.id, 0)).expires_at).toEqual(expires_at)
})

test('a key that has ended, or was rotated before, is not rotated', async () => {
  const made = await rotate(tenant.keyId, 0)
  expect(await rejectionOf(rotate(tenant.keyId, 0))).toContain(`was rotated to ${made.id} already`)
  await revoke(made.id)
  expect(await rejectionOf(rotate(made.id, hourMs))).toContain('has ended')
})

test('of two concurrent rotations one creates a key', async () => {
  const results = await Promise.allSettled([1, 2].map(() => rotate(tenant.keyId, hourMs)))
  expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  expect(await keys()).toHaveLength(2)
})

test('a suspended organisation is rejected, another is not, and a resumed one goes on with its data', async () => {
  const { db, clock } = service.services
  const other = await service.createTenant()
  expect((await service.postSignal(tenant.prompt, tenant.key)).status).toBe(201)
  expect(await setSuspended(db, clock, tenant.org, true)).toMatchObject({ used: 1, suspended_at: clock.now() })
  await eventually(() => statusOf(tenant.key), 401)
  expect((await service.postSignal(other.prompt, other.key)).status).toBe(201)
  expect(await setSuspended(db, clock, tenant.org, false)).toMatchObject({ used: 1, suspended_at: null })
  await eventually(() => statusOf(tenant.key), 200)
})

test('every change is in the audit log, newest first, with who made it and without a secret', async () => {
  const { db, clock } = service.services
  const made = await service.createKey(tenant, undefined, { name: 'one' })
  await changeKey(db, clock, made.id, { name: 'two', scopes: ['signals:write'] })
  const rotated = await rotate(made.id, 0)
  // What is repeated changes nothing.
  for (const _ of [1, 2]) await revoke(rotated.id)
  await setPlan(db, clock, tenant.org, 'team', 5)
  for (const _ of [1, 2]) await setRetention(db, clock, tenant.org, 400)
  const { secret } = await setWebhook(db, clock, await requireOrganisation(db, tenant.org), operator)
  for (const _ of [1, 2]) await setSuspended(db, clock, tenant.org, true)
  await setSuspended(db, clock, tenant.org, false)
  const entries = await readAudit()
  const change = { actor: 'cli', details: {} }
  expect(entries.filter(({ action }) => action !== 'prompt.created')).toMatchObject([
    { ...change, action: 'organisation.resumed', subject: tenant.org },
    { ...change, action: 'organisation.suspended', subject: tenant.org },
    { ...change, action: 'webhook.secret_set', subject: tenant.org },
    { ...change, action: 'retention.changed', subject: tenant.org, details: { retention_days: 400 } },
    { ...change, action: 'plan.changed', subject: tenant.org, details: { plan: 'team', monthly_limit: 5 } },
    { ...change, action: 'key.revoked', subject: rotated.id },
    { ...change, action: 'key.rotated', subject: made.id, details: { replaced_by: rotated.id } },
    { ...change, action: 'key.updated', subject: made.id, details: { name: 'two', scopes: ['signals:write'] } },
    { ...change, action: 'key.created', subject: made.id, details: { name: 'one', expires_at: null } },
    { ...change, action: 'key.created', subject: tenant.keyId, details: { name: 'test' } },
    { ...change, action: 'organisation.created', subject: tenant.org, details: { plan: 'free', monthly_limit: 1_000 } },
  ])
  const text = JSON.stringify(entries)
  for (const hidden of [secret, made.key, rotated.key, tenant.key]) expect(text).not.toContain(hidden)
  expect(await rejectionOf(changeKey(db, clock, made.id, { name: '' }))).toContain('The name is not valid.')
  expect(await readAudit()).toEqual(entries)
})
