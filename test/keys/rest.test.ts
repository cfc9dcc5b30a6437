import { expect, test } from 'bun:test'
import { insertAuditEntries } from '../../src/audit/store.ts'
import type { Db } from '../../src/db/client.ts'
import { defaultScopes, presets, scopes } from '../../src/lib/scopes.ts'
import { requireOrganisation } from '../../src/orgs/manage.ts'
import { invalid } from '../client.ts'
import { eventually, type Row } from '../program.ts'
import { entry } from '../service.ts'
import { postBatch, startReplica } from '../signals/fixtures.ts'
import { useAdmin, useService, useTenant } from '../use.ts'

const service = useService()
const tenant = useTenant(service)
const admin = useAdmin(service, tenant)

const create = async (json: object): Promise<Row> => (await service.post('/keys', admin.key, json)).body.data
const changeBy = (key: string, id: string, json: object) => service.patch(`/keys/${id}`, key, json)
const lastAudit = async () => (await service.get('/audit?limit=1', admin.key)).body.data

const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
const unrestricted = { origins: null, prompts: null, monthly_limit: null }

test('a key is created with a preset, used, shown without its text, changed and revoked', async () => {
  const expires_at = '2126-01-01T00:00:00.000Z'
  const made = await create({ name: ' website ', preset: 'app', expires_at: '2126-01-01T00:00:00Z' })
  const { id, key } = made
  const given = { id: expect.stringMatching(/^key_/), name: 'website', scopes: presets.app, expires_at }
  expect(made).toEqual({
    ...given,
    ...unrestricted,
    org: tenant.org,
    key: expect.stringMatching(/^psk_[0-9A-Za-z]{36}$/),
  })
  const use = async () => (await service.postSignal(tenant.prompt, key)).status
  expect(await use()).toBe(201)
  const shown = { ...given, prefix: key.slice(0, 12), created_at: time, revoked_at: null, replaced_by: null }
  const read = await service.get(`/keys/${id}`, admin.key)
  expect(read.body).toMatchObject({ data: shown })
  expect(read.text).not.toContain(key)
  const changed = await service.patch(`/keys/${id}`, admin.key, { scopes: ['history:read'], expires_at: null })
  expect(changed.body.data).toMatchObject({ name: 'website', scopes: ['history:read'], expires_at: null })
  await eventually(use, 403)
  const revoke = async () => (await service.delete(`/keys/${id}`, admin.key)).body.data
  const { revoked_at } = await revoke()
  expect(revoked_at).toEqual(time)
  await eventually(use, 401)
  expect(await revoke()).toMatchObject({ id, name: 'website', scopes: ['history:read'], revoked_at })
})

test('a key has the default scopes, or those given, each once', async () => {
  expect((await create({ name: 'plain' })).scopes).toEqual(defaultScopes)
  const given = ['signals:write', 'history:read', 'signals:write']
  expect((await create({ name: 'twice', scopes: given })).scopes).toEqual(['history:read', 'signals:write'])
})

test('a caller cannot grant, or get by a rotation, a scope that its own key lacks', async () => {
  const { key, id } = await service.createKey(tenant, ['keys:write', 'signals:write'])
  const rejected = { status: 403, body: { error: { code: 'forbidden', scope: 'webhooks:write' } } }
  const asked = ['signals:write', 'webhooks:write']
  expect(await service.post('/keys', key, { name: 'more', scopes: asked })).toMatchObject(rejected)
  expect(await service.patch(`/keys/${id}`, key, { scopes: asked })).toMatchObject(rejected)
  expect((await service.post('/keys', key, { name: 'all', preset: 'admin' })).status).toBe(403)
  expect((await service.post(`/keys/${admin.id}/rotate`, key, {})).status).toBe(403)
  expect((await service.post('/keys', key, { name: 'same', scopes: ['signals:write'] })).status).toBe(201)
})

test('a caller cannot extend the life of a key with a scope that its own key lacks', async () => {
  const { key } = await service.createKey(tenant, ['keys:write', 'signals:write'])
  const soon = new Date(Date.now() + 3_600_000).toISOString()
  const sooner = new Date(Date.now() + 60_000).toISOString()
  const { id } = await create({ name: 'short', preset: 'admin', expires_at: soon })
  const change = (json: object, by = key) => changeBy(by, id, json)
  for (const expires_at of [null, '2126-01-01T00:00:00Z']) {
    expect(await change({ expires_at })).toMatchObject({ status: 403, body: { error: { scope: 'history:read' } } })
  }
  expect((await change({ expires_at: sooner, name: 'shorter' })).status).toBe(200)
  expect((await change({ expires_at: null, scopes: ['signals:write'] })).status).toBe(200)
  expect((await change({ preset: 'admin' }, admin.key)).status).toBe(200)
  expect((await change({ expires_at: soon })).status).toBe(200)
  expect((await change({ expires_at: null }, admin.key)).status).toBe(200)
})

test('a key that expires cannot grant a longer life: not to itself, to another key, or by a rotation', async () => {
  const expiresAt = new Date(Date.now() + 3_600_000)
  const [end, later] = [expiresAt.toISOString(), new Date(expiresAt.getTime() + 1).toISOString()]
  const { key, id } = await service.createKey(tenant, presets.admin, { expires_at: expiresAt })
  const reader = { name: 'reader', preset: 'reader' }
  const { id: permanent } = await create(reader)
  for (const answer of [
    await changeBy(key, id, { expires_at: null }),
    await changeBy(key, id, { expires_at: later }),
    await service.post('/keys', key, reader),
    await service.post('/keys', key, { ...reader, expires_at: later }),
    await changeBy(key, permanent, { preset: 'admin' }),
    await service.post(`/keys/${permanent}/rotate`, key, {}),
  ]) {
    const message = `must be no later than ${end}, when the key of this request expires`
    expect(answer).toMatchObject(invalid(['/expires_at', message]))
  }
  expect((await service.post('/keys', key, { ...reader, expires_at: end })).status).toBe(201)
  expect((await changeBy(key, permanent, { scopes: ['usage:read'] })).status).toBe(200)
  const rotated = (await service.post(`/keys/${id}/rotate`, key, {})).body.data
  expect(rotated).toMatchObject({ scopes: presets.admin, expires_at: end })
})

test('a change that gives nothing is rejected, and nothing is written', async () => {
  const last = await lastAudit()
  for (const path of [`/keys/${admin.id}`, `/prompts/${tenant.prompt}`]) {
    for (const json of [{}, { last_used_at: null }]) {
      const message = expect.stringMatching(/^must give at least one of name, /)
      expect(await service.patch(path, admin.key, json)).toMatchObject(invalid(['', message]))
    }
  }
  expect(await lastAudit()).toEqual(last)
})

test('a caller that may change a key or a prompt sees it whole, without a scope to read', async () => {
  const { key } = await service.createKey(tenant, ['keys:write', 'prompts:write', 'history:read', 'signals:write'])
  const { id } = await create({ name: 'whole', preset: 'app' })
  for (const path of [`/keys/${id}`, `/prompts/${tenant.prompt}`]) {
    const changed = await service.patch(path, key, { name: 'renamed' })
    expect(changed.text).toBe((await service.get(path, admin.key)).text)
    expect((await service.get(path, key)).status).toBe(403)
  }
})

test('scopes are added to those that a key has, and taken from them', async () => {
  const { id } = await create({ name: 'narrow', scopes: ['signals:write', 'history:read'] })
  const change = async (json: object, key = admin.key) => {
    const { body } = await changeBy(key, id, json)
    return body.data?.scopes ?? body.error.details
  }
  const beside = [{ path: '/add_scopes', message: 'must be absent when scopes or a preset are given' }]
  for (const [json, outcome] of [
    [{ add_scopes: ['usage:read', 'history:read'] }, ['history:read', 'signals:write', 'usage:read']],
    [{ remove_scopes: ['history:read', 'keys:read'] }, ['signals:write', 'usage:read']],
    [{ add_scopes: ['signals:read'], remove_scopes: ['usage:read'] }, ['signals:read', 'signals:write']],
    [{ remove_scopes: ['signals:read', 'signals:write'] }, [{ path: '/scopes', message: 'must not be empty' }]],
    [{ scopes: ['usage:read'], add_scopes: ['signals:read'] }, beside],
    [{ preset: 'app', add_scopes: ['signals:read'] }, beside],
  ]) {
    expect([json, await change(json as object)]).toEqual([json, outcome])
  }
  const { key } = await service.createKey(tenant, ['keys:write', 'signals:read', 'signals:write'])
  const missing = { status: 403, body: { error: { code: 'forbidden', scope: 'usage:read' } } }
  expect(await changeBy(key, id, { add_scopes: ['usage:read'] })).toMatchObject(missing)
  expect(await change({ remove_scopes: ['signals:read'] }, key)).toEqual(['signals:write'])
})

test('a caller cannot change the restrictions of a key with a scope that its own key lacks', async () => {
  const { key } = await service.createKey(tenant, ['keys:write'])
  const { id } = await create({ name: 'page', preset: 'browser', origins: ['https://example.com'], monthly_limit: 5 })
  const change = (json: object, by = key) => changeBy(by, id, json)
  for (const given of [unrestricted, { origins: ['https://*.example.com'] }, { prompts: null }, { monthly_limit: 6 }]) {
    expect(await change(given)).toMatchObject({ status: 403, body: { error: { scope: 'signals:write' } } })
  }
  expect((await change({ name: 'website' })).status).toBe(200)
  expect((await change(unrestricted, admin.key)).status).toBe(200)
  const updated = { actor: admin.id, action: 'key.updated', subject: id, details: unrestricted }
  expect(await lastAudit()).toMatchObject([updated])
})

test.each([
  ['no name', { preset: 'app' }, '/name'],
  ['an unknown scope', { name: 'x', scopes: ['signals:wrote'] }, '/scopes/0'],
  ['no scope at all', { name: 'x', scopes: [] }, '/scopes'],
  ['an unknown preset', { name: 'x', preset: 'root' }, '/preset'],
  ['both', { name: 'x', preset: 'app', scopes: ['signals:write'] }, '/preset'],
  ['a time without a zone', { name: 'x', expires_at: '2126-01-01' }, '/expires_at'],
])('a key with %s is rejected, naming the field', async (_, json, path) => {
  expect(await service.post('/keys', admin.key, json)).toMatchObject(invalid(path))
})

test('every change is made in the share of the transactions that its organisation has', async () => {
  const own = await service.createTenant()
  const { key } = await service.createKey(own, [...scopes])
  const { db } = service.services
  const tenants: unknown[] = []
  const transaction: Db['transaction'] = (work, permitRequest) => {
    tenants.push(permitRequest?.tenant)
    return db.transaction(work, permitRequest)
  }
  const watched = { ...service.services, db: { ...db, transaction } }
  const replica = await startReplica({ ...service, services: watched })
  const made = await replica.post('/keys', key, { name: 'one' })
  const path = `/keys/${made.body.data.id}`
  const prompt = await replica.post('/prompts', key, { name: 'one' })
  const { id: prompt_id } = prompt.body.data
  const recorded = await postBatch(replica, { ...own, key, prompt: prompt_id }, [{ value: 'positive' }])
  const answers = [
    ...[made, prompt, recorded],
    await replica.patch(path, key, { name: 'two' }),
    await replica.post(`${path}/rotate`, key, {}),
    await replica.delete(path, key),
    await replica.patch(`/prompts/${prompt_id}`, key, { name: 'two' }),
    await replica.put('/webhooks/github', key),
    await replica.post('/history/batch', key, { entries: [{ ...entry(), prompt_id }] }),
    await replica.delete(`/prompts/${prompt_id}/signals/${recorded.body.data[0].id}`, key),
  ]
  expect(answers.map(({ status }) => status)).toEqual([201, 201, 200, 200, 201, 200, 200, 200, 200, 200])
  const { organisationId } = await requireOrganisation(db, own.org)
  expect(tenants).toEqual(Array(10).fill(organisationId))
})

test('the audit log names no key and no prompt of another organisation', async () => {
  const { db, clock } = service.services
  const other = await service.createTenant()
  const { organisationId } = await requireOrganisation(db, tenant.org)
  const change = { organisationId, action: 'prompt.updated' as const }
  const events = [other.keyId, other.prompt, tenant.prompt].map((subject) => ({ ...change, subject }))
  await insertAuditEntries(db.sql, other.keyId, clock.now(), events)
  const { data } = (await service.get('/audit?limit=3', admin.key)).body
  const names = data.map((entry: Record<string, unknown>) => [entry.actor_name, entry.subject_name])
  expect(names).toEqual([[null, expect.any(String)], ...Array(2).fill([null, null])])
})
