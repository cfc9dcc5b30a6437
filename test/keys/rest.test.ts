// Keys, webhook and audit log over REST, within the caller's own organisation.
import { beforeAll, expect, test } from 'bun:test'
import { createApp } from '../../src/app.ts'
import type { Db } from '../../src/db/client.ts'
import { createServices } from '../../src/deps.ts'
import { type Scope, scopes } from '../../src/http/caller.ts'
import { createKey } from '../../src/keys/manage.ts'
import { defaultScopes, presets } from '../../src/keys/schema.ts'
import { requireOrganisation } from '../../src/orgs/manage.ts'
import { eventually, type Row } from '../program.ts'
import { entry, type Tenant } from '../service.ts'
import { useService, useTenant } from '../use.ts'

const service = useService()
const tenant = useTenant(service)
let admin: string
let adminId: string

beforeAll(async () => {
  ;({ key: admin, id: adminId } = await makeKey(tenant, [...scopes]))
})

const makeKey = ({ org }: Tenant, given: Scope[]) =>
  createKey(service.services.db, service.clock, { org, name: 'made', scopes: given, expiresAt: null })

const call = (method: string, path: string, json?: unknown, key = admin, headers: Record<string, string> = {}) =>
  service.call(method, `/api/v1${path}`, { key, headers, ...(json === undefined ? {} : { json }) })

const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

test('a key is made with a preset, used, shown without its text, changed and revoked', async () => {
  const made = await call('POST', '/keys', { name: ' website ', preset: 'app', expires_at: '2126-01-01T00:00:00Z' })
  const { id, key } = made.body.data
  expect(made).toMatchObject({ status: 201, headers: expect.anything() })
  expect(made.body.data).toEqual({
    id: expect.stringMatching(/^key_/),
    key: expect.stringMatching(/^psk_[0-9A-Za-z]{36}$/),
    org: tenant.org,
    name: 'website',
    scopes: presets.app,
    expires_at: '2126-01-01T00:00:00.000Z',
    origins: null,
    prompts: null,
    monthly_limit: null,
  })
  expect((await service.postSignal(tenant.prompt, key)).status).toBe(201)
  const shown = {
    id,
    name: 'website',
    prefix: key.slice(0, 12),
    scopes: presets.app,
    created_at: time,
    expires_at: '2126-01-01T00:00:00.000Z',
    revoked_at: null,
    replaced_by: null,
  }
  expect((await call('GET', `/keys/${id}`)).body).toMatchObject({ data: shown })
  const changed = await call('PATCH', `/keys/${id}`, { scopes: ['history:read'], expires_at: null })
  expect(changed.body.data).toMatchObject({ name: 'website', scopes: ['history:read'], expires_at: null })
  await eventually(async () => (await service.postSignal(tenant.prompt, key)).status, 403)
  expect((await call('DELETE', `/keys/${id}`)).body.data).toMatchObject({ id, revoked_at: time })
  await eventually(async () => (await service.postSignal(tenant.prompt, key)).status, 401)
  const again = await call('DELETE', `/keys/${id}`)
  expect([again.status, again.body.data.id]).toEqual([200, id])
})

test('without a word of scopes a key gets the default ones', async () => {
  expect((await call('POST', '/keys', { name: 'plain' })).body.data.scopes).toEqual(defaultScopes)
})

test('nobody grants, or gets by a rotation, a scope that their own key lacks', async () => {
  const { key, id } = await makeKey(tenant, ['keys:write', 'signals:write'])
  const rejected = { status: 403, body: { error: { code: 'forbidden', scope: 'webhooks:write' } } }
  const asked = ['signals:write', 'webhooks:write']
  expect(await call('POST', '/keys', { name: 'more', scopes: asked }, key)).toMatchObject(rejected)
  expect(await call('PATCH', `/keys/${id}`, { scopes: asked }, key)).toMatchObject(rejected)
  expect((await call('POST', '/keys', { name: 'all', preset: 'admin' }, key)).status).toBe(403)
  expect((await call('POST', `/keys/${adminId}/rotate`, {}, key)).status).toBe(403)
  expect((await call('POST', '/keys', { name: 'same', scopes: ['signals:write'] }, key)).status).toBe(201)
})

test('nobody lets a key live longer that has a scope which their own key lacks', async () => {
  const { key } = await makeKey(tenant, ['keys:write', 'signals:write'])
  const soon = new Date(Date.now() + 3_600_000).toISOString()
  const made = await call('POST', '/keys', { name: 'short', preset: 'admin', expires_at: soon })
  const change = (json: object, by = key) => call('PATCH', `/keys/${made.body.data.id}`, json, by)
  for (const expires_at of [null, '2126-01-01T00:00:00Z']) {
    expect(await change({ expires_at })).toMatchObject({ status: 403, body: { error: { scope: 'history:read' } } })
  }
  const sooner = new Date(Date.now() + 60_000).toISOString()
  expect((await change({ expires_at: sooner, name: 'shorter' })).status).toBe(200)
  expect((await change({ expires_at: null, scopes: ['signals:write'] })).status).toBe(200)
  expect((await change({ preset: 'admin' }, admin)).status).toBe(200)
  expect((await change({ expires_at: soon })).status).toBe(200)
  expect((await change({ expires_at: null }, admin)).status).toBe(200)
})

test('nobody lifts the restrictions of a key whose scope their own key lacks, and the audit log says who did', async () => {
  const { key } = await makeKey(tenant, ['keys:write'])
  const origins = ['https://example.com']
  const made = await call('POST', '/keys', { name: 'page', preset: 'browser', origins, monthly_limit: 5 })
  const change = (json: object, by?: string) => call('PATCH', `/keys/${made.body.data.id}`, json, by)
  const lifted = { origins: null, prompts: null, monthly_limit: null }
  for (const given of [lifted, { origins: ['https://*.example.com'] }, { prompts: null }, { monthly_limit: 6 }]) {
    expect(await change(given, key)).toMatchObject({ status: 403, body: { error: { scope: 'signals:write' } } })
  }
  expect((await change({ name: 'website' }, key)).status).toBe(200)
  expect((await change(lifted)).status).toBe(200)
  const [entry] = (await call('GET', '/audit?limit=1')).body.data
  expect(entry).toMatchObject({ actor: adminId, action: 'key.updated', subject: made.body.data.id, details: lifted })
})

test('the keys of another organisation are answered like those that do not exist', async () => {
  const other = await service.createTenant()
  for (const [method, path, json] of [
    ['GET', '', undefined],
    ['PATCH', '', { name: 'mine' }],
    ['DELETE', '', undefined],
    ['POST', '/rotate', {}],
  ] as const) {
    const [theirs, none] = [
      await call(method, `/keys/${other.keyId}${path}`, json),
      await call(method, `/keys/key_none${path}`, json),
    ]
    const hide = ({ text, headers }: typeof theirs, id: string) =>
      text.replaceAll(headers.get('x-request-id') as string, 'ID').replaceAll(id, 'KEY')
    expect([theirs.status, hide(theirs, other.keyId)]).toEqual([404, hide(none, 'key_none')])
  }
  expect((await service.getHistory(other.prompt, other.key)).status).toBe(200)
})

test('a key created twice by a retry is one key, and its text is in the first answer alone', async () => {
  const headers = { 'idempotency-key': 'retry-1' }
  const first = await call('POST', '/keys', { name: 'once' }, admin, headers)
  const [second, third] = await Promise.all([1, 2].map(() => call('POST', '/keys', { name: 'once' }, admin, headers)))
  expect(first.headers.get('idempotent-replayed')).toBeNull()
  for (const replayed of [second, third]) {
    expect(replayed?.headers.get('idempotent-replayed')).toBe('true')
    expect(replayed?.body).toEqual({ data: { ...first.body.data, key: null } })
  }
  const other = await call('POST', '/keys', { name: 'another' }, admin, headers)
  expect(other).toMatchObject({ status: 422, body: { error: { details: [{ path: 'Idempotency-Key' }] } } })
  const rotated = await call('POST', `/keys/${first.body.data.id}/rotate`, {}, admin, headers)
  expect(rotated.status).toBe(422)
})

test('a retry that comes by another name of the service is still a retry', async () => {
  const headers = { 'idempotency-key': 'other-host' }
  const first = await call('POST', '/keys', { name: 'hosts' }, admin, headers)
  for (const host of ['replica-2:3000', 'signals.example.com', '[bad']) {
    const again = await call('POST', '/keys', { name: 'hosts' }, admin, { ...headers, host })
    expect([again.status, again.body.data]).toEqual([201, { ...first.body.data, key: null }])
  }
})

test('of many retries at once one makes a key', async () => {
  const before = (await call('GET', '/keys?limit=100')).body.data.length
  const headers = { 'idempotency-key': 'race' }
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => call('POST', '/keys', { name: 'race' }, admin, headers)),
  )
  expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(201))
  expect(new Set(answers.map(({ body }) => body.data.id)).size).toBe(1)
  expect(answers.filter(({ body }) => body.data.key !== null)).toHaveLength(1)
  expect((await call('GET', '/keys?limit=100')).body.data).toHaveLength(before + 1)
})

test('what was rejected pins no Idempotency-Key', async () => {
  const headers = { 'idempotency-key': 'rejected' }
  expect((await call('POST', '/keys', { name: 'x', expires_at: '2020-01-01T00:00:00Z' }, admin, headers)).status).toBe(
    422,
  )
  expect((await call('POST', '/keys', { name: 'x' }, admin, headers)).status).toBe(201)
})

test('a rotation over REST leaves the old key until the overlap ends', async () => {
  const { id, key } = await makeKey(tenant, ['history:read'])
  const rotated = await call('POST', `/keys/${id}/rotate`, { overlap_seconds: 3_600 })
  expect([rotated.status, rotated.body.data.scopes]).toEqual([201, ['history:read']])
  expect((await service.getHistory(tenant.prompt, key)).status).toBe(200)
  expect((await service.getHistory(tenant.prompt, rotated.body.data.key)).status).toBe(200)
  expect((await call('GET', `/keys/${id}`)).body.data).toMatchObject({
    replaced_by: rotated.body.data.id,
    expires_at: time,
  })
  expect((await call('POST', `/keys/${id}/rotate`, {})).status).toBe(422)
})

test.each([
  ['no name', { preset: 'app' }, '/name'],
  ['an unknown scope', { name: 'x', scopes: ['signals:wrote'] }, '/scopes/0'],
  ['no scope at all', { name: 'x', scopes: [] }, '/scopes'],
  ['an unknown preset', { name: 'x', preset: 'root' }, '/preset'],
  ['both', { name: 'x', preset: 'app', scopes: ['signals:write'] }, '/preset'],
  ['a time without a zone', { name: 'x', expires_at: '2126-01-01' }, '/expires_at'],
])('a key with %s is rejected, naming the field', async (_, json, path) => {
  const { status, body } = await call('POST', '/keys', json)
  expect({ status, path: body.error.details?.[0]?.path }).toEqual({ status: 422, path })
})

test('lists go by cursor, newest first, to the end; a forged cursor is rejected', async () => {
  const own = await service.createTenant()
  const { key } = await makeKey(own, [...scopes])
  for (let index = 0; index < 5; index += 1) await call('POST', '/keys', { name: `key ${index}` }, key)
  const names: string[] = []
  let path = '/keys?limit=3'
  for (;;) {
    const { body, headers } = await call('GET', path, undefined, key)
    expect(body.pagination.per_page).toBe(3)
    names.push(...body.data.map(({ name }: { name: string }) => name))
    const link = headers.get('link')
    if (body.pagination.next_cursor === null) {
      expect(link).toBeNull()
      break
    }
    expect(link).toBe(`</api/v1/keys?limit=3&cursor=${body.pagination.next_cursor}>; rel="next"`)
    path = `/keys?limit=3&cursor=${body.pagination.next_cursor}`
  }
  expect(names).toEqual(['key 4', 'key 3', 'key 2', 'key 1', 'key 0', 'made', 'test'])
  for (const cursor of ['', 'x', '!', 'MQ==', '%00']) {
    const { status, body } = await call('GET', `/keys?cursor=${cursor}`, undefined, key)
    expect([cursor, status, body.error.details?.[0]?.path]).toEqual([cursor, 422, 'cursor'])
  }
})

test('links begin with the address that callers reach the service at', async () => {
  const { db, clock, log } = service.services
  const app = createApp(createServices({ db, clock, log }, { PUBLIC_URL: 'https://example.com/signals' }))
  const request = new Request('http://localhost/api/v1/keys?limit=1', { headers: { authorization: `Bearer ${admin}` } })
  const { headers } = await app.fetch(request)
  expect(headers.get('link')).toStartWith('<https://example.com/signals/api/v1/keys?limit=1&cursor=')
})

test('every change is made in the share of the transactions that its organisation has', async () => {
  const own = await service.createTenant()
  const { key } = await makeKey(own, [...scopes])
  const { db, clock, log } = service.services
  const tenants: unknown[] = []
  const watched: Db = {
    ...db,
    transaction(work, permitRequest) {
      tenants.push(permitRequest?.tenant)
      return db.transaction(work, permitRequest)
    },
  }
  const app = createApp(createServices({ db: watched, clock, log }))
  const statuses: number[] = []
  async function change(method: string, path: string, json?: object) {
    const request = new Request(`http://localhost/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(json ? { body: JSON.stringify(json) } : {}),
    })
    const response = await app.fetch(request)
    statuses.push(response.status)
    return ((await response.json()) as Row).data
  }
  const made = await change('POST', '/keys', { name: 'one' })
  await change('PATCH', `/keys/${made.id}`, { name: 'two' })
  await change('POST', `/keys/${made.id}/rotate`, {})
  await change('DELETE', `/keys/${made.id}`)
  const prompt = await change('POST', '/prompts', { name: 'one' })
  await change('PATCH', `/prompts/${prompt.id}`, { name: 'two' })
  await change('PUT', '/webhooks/github')
  await change('POST', '/history/batch', { entries: [{ ...entry(), prompt_id: prompt.id }] })
  const [signal] = await change('POST', `/prompts/${prompt.id}/signals/batch`, { signals: [{ value: 'positive' }] })
  await change('DELETE', `/prompts/${prompt.id}/signals/${signal.id}`)
  expect(statuses).toEqual([201, 200, 201, 200, 201, 200, 200, 200, 200, 200])
  const { id } = await requireOrganisation(db, own.org)
  expect(tenants).toEqual(Array(10).fill(id))
})

test('the audit log over REST names the key that made each change', async () => {
  const own = await service.createTenant()
  const { key, id } = await makeKey(own, [...scopes])
  const made = (await call('POST', '/keys', { name: 'one' }, key)).body.data
  const { secret, path } = (await call('PUT', '/webhooks/github', undefined, key)).body.data
  expect(path).toBe(`/webhooks/github/${own.org}`)
  const { text, body } = await call('GET', '/audit?limit=2', undefined, key)
  expect(body.data).toMatchObject([
    { actor: id, action: 'webhook.secret_set', subject: own.org, created_at: time },
    { actor: id, action: 'key.created', subject: made.id, details: { name: 'one' } },
  ])
  expect(text).not.toContain(secret)
  expect(text).not.toContain(made.key)
  expect(body.pagination.next_cursor).toEqual(expect.any(String))
})
