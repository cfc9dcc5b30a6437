import { expect, test } from 'bun:test'
import { createKey } from '../../src/keys/manage.ts'
import { useService, useTenant } from '../use.ts'

const service = useService()
const tenant = useTenant(service, 5)

test('a key can read its own scopes and organisation, and what is used of the month only with the scope for it', async () => {
  const { db } = service.services
  const make = (scopes: ('usage:read' | 'signals:write')[]) =>
    createKey(db, service.clock, { org: tenant.org, name: 'own', scopes, expiresAt: new Date('2126-01-01') })
  const [reader, writer] = [await make(['usage:read']), await make(['signals:write'])]
  expect((await service.postSignal(tenant.prompt, writer.key)).status).toBe(201)
  const shown = (key: typeof reader) => ({
    id: key.id,
    name: 'own',
    prefix: key.key.slice(0, 12),
    scopes: key.scopes,
    created_at: expect.stringMatching(/Z$/),
    expires_at: '2126-01-01T00:00:00.000Z',
    revoked_at: null,
    replaced_by: null,
    origins: null,
    prompts: null,
    monthly_limit: null,
    organisation: { id: tenant.org, name: 'Test', plan: 'free' },
  })
  const ask = (key: string) => service.call('GET', '/api/v1/key', { key })
  const [read, written] = [await ask(reader.key), await ask(writer.key)]
  expect([read.status, written.status]).toEqual([200, 200])
  const usage = { used: 1, limit: 5, resets_at: expect.stringMatching(/-01T00:00:00\.000Z$/) }
  // When it was last used is true to a minute, so that the first answer may or may not have it.
  const { last_used_at: _, ...first } = read.body.data
  const { last_used_at: __, ...second } = written.body.data
  expect([first, second]).toEqual([
    { ...shown(reader), usage },
    { ...shown(writer), usage: null },
  ])
  expect((await ask('psk_wrong')).status).toBe(401)
})

test('a browser key, which anybody can read, is not told whose it is', async () => {
  const restrictions = { origins: ['https://example.com'], prompts: null, monthly_limit: null }
  const given = { org: tenant.org, name: 'page', scopes: ['signals:write' as const], expiresAt: null, ...restrictions }
  const { key } = await createKey(service.services.db, service.clock, given)
  for (const headers of [{}, { origin: 'https://example.com' }]) {
    const { status, text, body } = await service.call('GET', '/api/v1/key', { key, headers })
    expect([status, body.error.code]).toEqual([403, 'forbidden'])
    expect(text).not.toContain(tenant.org)
  }
})
