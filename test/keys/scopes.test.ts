import { expect, test } from 'bun:test'
import { createApp } from '../../src/app.ts'
import { defaultScopes, presets, type Scope, scopes } from '../../src/lib/scopes.ts'
import { entry } from '../service.ts'
import { useService, useTenant } from '../use.ts'

const service = useService()
const tenant = useTenant(service)

const keyWith = async (given: Scope[]) => (await service.createKey(tenant, given)).key

/** The scope of every route, as docs/interface.md promises it. */
const promised = {
  'GET /audit': 'keys:read',
  'GET /erased-files': 'prompts:read',
  'GET /repositories': 'prompts:read',
  'POST /repositories/rename': 'prompts:write',
  'POST /history/batch': 'history:write',
  'POST /history/remove': 'history:delete',
  'GET /changes': 'signals:read',
  'GET /impact': 'signals:read',
  'GET /keys': 'keys:read',
  'POST /keys': 'keys:write',
  'GET /keys/:key_id': 'keys:read',
  'DELETE /keys/:key_id': 'keys:write',
  'PATCH /keys/:key_id': 'keys:write',
  'POST /keys/:key_id/rotate': 'keys:write',
  'GET /prompts': 'prompts:read',
  'POST /prompts': 'prompts:write',
  'GET /prompts/:prompt_id': 'prompts:read',
  'PATCH /prompts/:prompt_id': 'prompts:write',
  'GET /prompts/:prompt_id/compare': 'signals:read',
  'GET /prompts/:prompt_id/history': 'history:read',
  'POST /prompts/:prompt_id/history': 'history:write',
  'DELETE /prompts/:prompt_id/history/:entry_id': 'history:delete',
  'GET /prompts/:prompt_id/history/:entry_id/diff': 'prompts:read',
  'GET /prompts/:prompt_id/impact': 'signals:read',
  'GET /prompts/:prompt_id/impact/:entry_id/days': 'signals:read',
  'GET /prompts/:prompt_id/signals': 'signals:read',
  'POST /prompts/:prompt_id/signals': 'signals:write',
  'DELETE /prompts/:prompt_id/signals': 'signals:write',
  'DELETE /prompts/:prompt_id/signals/:signal_id': 'signals:delete',
  'POST /prompts/:prompt_id/signals/batch': 'signals:write',
  'GET /prompts/:prompt_id/signals/export': 'signals:read',
  'GET /prompts/:prompt_id/stats': 'signals:read',
  'GET /signals/export': 'signals:read',
  'GET /usage': 'usage:read',
  'GET /webhooks/endpoints': 'webhooks:read',
  'POST /webhooks/endpoints': 'webhooks:write',
  'GET /webhooks/endpoints/:endpoint_id': 'webhooks:read',
  'DELETE /webhooks/endpoints/:endpoint_id': 'webhooks:write',
  'PATCH /webhooks/endpoints/:endpoint_id': 'webhooks:write',
  'GET /webhooks/endpoints/:endpoint_id/deliveries': 'webhooks:read',
  'POST /webhooks/endpoints/:endpoint_id/deliveries/:event_id/redeliver': 'webhooks:write',
  'POST /webhooks/endpoints/:endpoint_id/rotate': 'webhooks:write',
  'POST /webhooks/endpoints/:endpoint_id/test': 'webhooks:write',
  'GET /webhooks/github': 'webhooks:write',
  'PUT /webhooks/github': 'webhooks:write',
}

/** Every route below /api/v1 except preflights, with the scope it declares. Any key may read itself. */
function routes() {
  const table = createApp(service.services).routes as { method: string; path: string; handler: { scope?: Scope } }[]
  return table
    .filter(
      ({ method, path }) =>
        path.startsWith('/api/v1/') && path !== '/api/v1/key' && !['ALL', 'OPTIONS'].includes(method),
    )
    .map(({ method, path, handler }) => ({ method, path, scope: handler.scope as Scope }))
}

test('every route needs the scope that is promised for it', () => {
  const declared = routes().map(({ method, path, scope }) => [`${method} ${path.slice('/api/v1'.length)}`, scope])
  expect(Object.fromEntries(declared)).toEqual(promised)
})

test('every route is 401 without a key, and 403 without its scope, before anything is looked up', async () => {
  const table = routes()
  for (const { method, path, scope } of table) {
    // Nothing of this name exists, and the body is broken: neither is looked at.
    const url = path.replace(/:\w+/g, 'pmt_none')
    const body = method === 'GET' || method === 'DELETE' ? {} : { body: '{' }
    expect((await service.call(method, url, body)).status).toBe(401)
    const key = await keyWith(scopes.filter((other) => other !== scope))
    const error = { code: 'forbidden', scope, message: expect.stringContaining(scope) }
    expect(await service.call(method, url, { key, ...body })).toMatchObject({ status: 403, body: { error } })
    expect((await service.call(method, url, { key: await keyWith([scope]), ...body })).status).not.toBe(403)
  }
})

test('a repeat of an entry answers with the one that is known, also to a key that may not read the history', async () => {
  const key = await keyWith(['history:write'])
  const post = async (by: string, given: object) =>
    (await service.post(`/prompts/${tenant.prompt}/history`, by, given)).body.data
  expect((await service.getHistory(tenant.prompt, key)).status).toBe(403)
  const known = await post(tenant.key, entry({ commit_sha: 'a1b2c3d4e5f6a7b8c9d0a1b2c3d4e5f6a7b8c9d0' }))
  expect(await post(key, entry({ commit_sha: 'a1b2c3d', user: { name: 'Eve', email: 'eve@example.com' } }))).toEqual(
    known,
  )
})

test('the presets and the default hold the scopes that their names promise', () => {
  expect<Record<string, string[]>>({ default: defaultScopes, ...presets }).toEqual({
    default: ['history:read', 'history:write', 'signals:read', 'signals:write', 'prompts:read', 'usage:read'],
    app: ['history:read', 'signals:write'],
    reader: ['history:read', 'signals:read', 'prompts:read', 'usage:read'],
    ci: ['history:read', 'history:write', 'prompts:read', 'prompts:write'],
    browser: ['signals:write'],
    admin: [...scopes],
  })
})

test('a key can read its scopes and its organisation, and the usage of the month only with the scope for it', async () => {
  const expiresAt = new Date('2126-01-01')
  const usage = { used: 1, limit: 5, resets_at: expect.stringMatching(/-01T00:00:00\.000Z$/) }
  const own = await service.createTenant(5)
  expect((await service.postSignal(own.prompt, own.key)).status).toBe(201)
  for (const scope of ['usage:read', 'signals:write'] as const) {
    const { key, org, ...made } = await service.createKey(own, [scope], { expires_at: expiresAt })
    const { status, body } = await service.get('/key', key)
    expect(status).toBe(200)
    expect(body.data).toEqual({
      ...made,
      prefix: key.slice(0, 12),
      created_at: expect.stringMatching(/Z$/),
      expires_at: expiresAt.toISOString(),
      // Accurate to a minute: the first answer may or may not have it.
      last_used_at: body.data.last_used_at,
      revoked_at: null,
      replaced_by: null,
      organisation: { id: org, name: 'Test', plan: 'free' },
      usage: scope === 'usage:read' ? usage : null,
    })
  }
  expect((await service.get('/key', 'psk_wrong')).status).toBe(401)
})

test('a browser key, which anybody can read, is not told whose it is', async () => {
  const { key } = await service.createKey(tenant, ['signals:write'], { origins: ['https://example.com'] })
  for (const headers of [{}, { origin: 'https://example.com' }]) {
    const { status, text, body } = await service.get('/key', key, headers)
    expect({ status, code: body.error.code }).toEqual({ status: 403, code: 'forbidden' })
    expect(text).not.toContain(tenant.org)
  }
})
