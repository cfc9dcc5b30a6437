import { expect, test } from 'bun:test'
import { createApp } from '../../src/app.ts'
import { type Scope, scopes } from '../../src/http/caller.ts'
import { parseNewKey } from '../../src/keys/given.ts'
import { createKey } from '../../src/keys/manage.ts'
import { defaultScopes, presets } from '../../src/keys/schema.ts'
import { entry } from '../service.ts'
import { useService, useTenant } from '../use.ts'

const service = useService()
const tenant = useTenant(service)

async function keyWith(given: Scope[]): Promise<string> {
  const { db } = service.services
  return (await createKey(db, service.clock, { org: tenant.org, name: 'scoped', scopes: given, expiresAt: null })).key
}

/**
 * Every route below /api/v1 that has a path and a method of its own, but for preflights, with the scope it declares. What a
 * key is may be asked with any key.
 */
function routes() {
  const table = createApp(service.services).routes as { method: string; path: string; handler: { scope?: Scope } }[]
  return table
    .filter(
      ({ method, path }) =>
        path.startsWith('/api/v1/') && path !== '/api/v1/key' && !['ALL', 'OPTIONS'].includes(method),
    )
    .map(({ method, path, handler }) => ({ method, path, scope: handler.scope as Scope }))
}

test('every route declares a scope, is 401 without a key, and 403 without the scope before anything is looked up', async () => {
  const table = routes()
  expect(table.map(({ scope }) => scope).filter((scope) => !scopes.includes(scope))).toEqual([])
  expect(table.length).toBeGreaterThan(2)
  for (const { method, path, scope } of table) {
    // Nothing of this name exists, and the body is broken: neither is looked at.
    const url = path.replace(/:\w+/g, 'pmt_none')
    const body = method === 'GET' || method === 'DELETE' ? {} : { body: '{' }
    expect((await service.call(method, url, body)).status).toBe(401)
    const key = await keyWith(scopes.filter((other) => other !== scope))
    const { status, body: answer } = await service.call(method, url, { key, ...body })
    expect({ status, code: answer.error.code, scope: answer.error.scope }).toEqual({
      status: 403,
      code: 'forbidden',
      scope,
    })
    expect(answer.error.message).toContain(scope)
    expect((await service.call(method, url, { key: await keyWith([scope]), ...body })).status).not.toBe(403)
  }
})

test('a key made without a word of scopes uses both endpoints of the interface', async () => {
  expect((await service.postSignal(tenant.prompt, tenant.key)).status).toBe(201)
  expect((await service.getHistory(tenant.prompt, tenant.key)).status).toBe(200)
})

test('to write history does not imply to read it', async () => {
  const key = await keyWith(['history:write'])
  const path = `/api/v1/prompts/${tenant.prompt}/history`
  expect((await service.call('POST', path, { key, json: entry() })).status).toBe(201)
  expect((await service.getHistory(tenant.prompt, key)).status).toBe(403)
})

test('the presets and the default hold the scopes that their names promise', () => {
  expect<Record<string, string[]>>({ default: defaultScopes, ...presets }).toEqual({
    default: ['history:read', 'history:write', 'signals:read', 'signals:write', 'prompts:read', 'usage:read'],
    app: ['history:read', 'signals:write'],
    reader: ['history:read', 'signals:read', 'prompts:read', 'usage:read'],
    ci: ['history:write', 'prompts:read'],
    browser: ['signals:write'],
    admin: [...scopes],
  })
})

test('scopes are kept once each; unknown ones and none at all are rejected', () => {
  const parse = (given: string[]) => parseNewKey({ name: 'N', scopes: given }).scopes
  expect(parse(['signals:write', 'history:read', 'signals:write'])).toEqual(['history:read', 'signals:write'])
  expect(() => parse(['signals:wrote'])).toThrow('The key is not valid.')
  expect(() => parse([])).toThrow('The key is not valid.')
})
