import { expect, test } from 'bun:test'
import { generateKey } from '../../src/keys/format.ts'
import { createKey, revokeKey } from '../../src/keys/manage.ts'
import { entry, type TestService } from '../service.ts'
import { useService, useTenant } from '../use.ts'

const service = useService()
const tenant = useTenant(service)

const historyPath = () => `/api/v1/prompts/${tenant.prompt}/history`

/** Everything of an answer but what differs from request to request. */
function shape({ status, headers, text, body }: Awaited<ReturnType<TestService['call']>>) {
  const id = headers.get('x-request-id') as string
  expect(body.error.request_id).toBe(id)
  const shown = [...headers].filter(([name]) => name !== 'date').map((pair) => pair.join(': ').replaceAll(id, 'ID'))
  return { status, headers: shown, text: text.replaceAll(id, 'ID') }
}

test('every kind of bad key gets one and the same answer', async () => {
  const typo = tenant.key.slice(0, -1) + (tenant.key.endsWith('0') ? '1' : '0')
  const { id, key: revoked } = await createKey(service.services.db, service.clock, {
    org: tenant.org,
    name: 'revoked',
    expiresAt: null,
  })
  await revokeKey(service.services.db, service.clock, id)
  const { key: expired } = await createKey(service.services.db, service.clock, {
    org: tenant.org,
    name: 'expired',
    expiresAt: new Date(Date.now() + 3_600_000),
  })
  service.clock.set(new Date(Date.now() + 3_600_001).toISOString())
  const authorizations = [
    undefined,
    '',
    'Bearer',
    'Bearer ',
    tenant.key,
    `Basic ${tenant.key}`,
    `Bearer ${tenant.key} x`,
    `Bearer ${tenant.key}, Bearer ${tenant.key}`,
    `Bearer ${typo}`,
    `Bearer ${generateKey()}`,
    `Bearer ${revoked}`,
    `Bearer ${expired}`,
    `Bearer ${'x'.repeat(10_000)}`,
    "Bearer ' or 1=1 --",
  ]
  const answers = await Promise.all(
    authorizations.map((authorization) =>
      service.call('GET', historyPath(), { headers: authorization === undefined ? {} : { authorization } }),
    ),
  )
  const first = shape(answers[0] as never)
  expect(first.status).toBe(401)
  expect(first.headers).toContain('www-authenticate: Bearer')
  for (const answer of answers) expect(shape(answer)).toEqual(first)
})

test.each(['Bearer', 'bearer', 'BEARER', 'bEaReR'])('takes the scheme written as %p', async (scheme) => {
  const answer = await service.call('GET', historyPath(), { headers: { authorization: `${scheme} ${tenant.key}` } })
  expect(answer.status).toBe(200)
})

test('a prompt of another organisation is answered like one that does not exist', async () => {
  const other = await service.createTenant()
  await service.addHistory(other.prompt, [entry()])
  // Known to the service's caches through its own organisation.
  expect((await service.postSignal(other.prompt, other.key)).status).toBe(201)
  const ids = [
    other.prompt,
    'pmt_unknown',
    'unknown',
    'pmt_',
    other.org,
    '%ff',
    '%E0%A4%A',
    '%00',
    'pmt_%00',
    '%2e%2e',
    '..%2f',
    `pmt_${'x'.repeat(5_000)}`,
  ]
  for (const [method, last] of [
    ['GET', 'history'],
    ['GET', 'signals'],
    ['GET', 'stats'],
    ['POST', 'signals'],
  ] as const) {
    const answers = await Promise.all(
      ids.map((id) =>
        service.call(method, `/api/v1/prompts/${id}/${last}`, {
          key: tenant.key,
          ...(method === 'POST' ? { json: { value: 'positive' } } : {}),
        }),
      ),
    )
    const first = shape(answers[0] as never)
    expect(first.status).toBe(404)
    for (const answer of answers) expect(shape(answer)).toEqual(first)
  }
})

test('the checks come in the order key, prompt, body, limit', async () => {
  const full = await service.createTenant(0)
  const broken = { body: '{', headers: { 'content-type': 'application/json' } }
  const path = `/api/v1/prompts/${full.prompt}/signals`
  expect((await service.call('POST', path, { ...broken, key: 'psk_wrong' })).status).toBe(401)
  expect((await service.call('POST', '/api/v1/prompts/pmt_none/signals', { ...broken, key: 'wrong' })).status).toBe(401)
  expect((await service.call('POST', '/api/v1/prompts/pmt_none/signals', { ...broken, key: full.key })).status).toBe(
    404,
  )
  expect((await service.call('POST', path, { ...broken, key: full.key })).status).toBe(422)
  expect((await service.call('POST', path, { json: { value: 'positive' }, key: full.key })).status).toBe(429)
  expect((await service.postSignal('pmt_none', full.key)).status).toBe(404)
})

test.each([
  ['GET', '/api/v1'],
  ['GET', '/api/v1/'],
  ['DELETE', '/api/v1/prompts'],
  ['GET', '/api/v1/prompt'],
  ['POST', '/api/v1/nothing/here'],
  ['DELETE', '/api/v1/prompts/pmt_x/history'],
  ['PATCH', '/api/v1/prompts/pmt_x/signals'],
  ['OPTIONS', '/api/v1/prompts/pmt_x/history'],
  ['DELETE', '/api/v1/prompts/pmt_x/stats'],
])('%s %s is unknown: 404 with a key, 401 without', async (method, path) => {
  const known = await service.call(method, path, { key: tenant.key })
  expect([known.status, known.body.error.code]).toEqual([404, 'not_found'])
  const unknown = await service.call(method, path)
  expect([unknown.status, unknown.body.error.code]).toEqual([401, 'unauthorized'])
  expect(unknown.headers.get('allow')).toBeNull()
})

test.each([
  ['DELETE', '/api/v1/prompts/pmt_x/history', 'GET, HEAD, POST'],
  ['PUT', '/api/v1/prompts/pmt_x/signals', 'OPTIONS, POST, GET, HEAD'],
  ['OPTIONS', '/api/v1/prompts/pmt_x/history/', 'GET, HEAD, POST'],
  ['POST', '/docs', 'GET, HEAD'],
  ['PUT', '/livez', 'GET, HEAD'],
  ['DELETE', '/', 'GET, HEAD'],
  ['GET', '/webhooks/github/org_x', 'POST'],
  ['GET', '/api/v1/nothing', null],
  ['POST', '/nothing', null],
])('%s %s is answered with the methods that there are: %p', async (method, path, allow) => {
  const { status, headers } = await service.call(method, path, { key: tenant.key })
  expect([status, headers.get('allow')]).toEqual([404, allow])
})

test.each([
  ['GET', '/nothing'],
  ['GET', '/prompts'],
  ['GET', '/settings'],
  ['GET', '/console/main.js'],
  ['POST', '/docs'],
  ['PUT', '/livez'],
  ['GET', '/api/v2/prompts/pmt_x/history'],
  ['GET', '/%ff'],
])('%s %s is unknown to everyone', async (method, path) => {
  const { status, body } = await service.call(method, path)
  expect([status, body.error.code]).toEqual([404, 'not_found'])
})

test('a well-formed request id is taken over, any other replaced', async () => {
  const ask = (id: string) => service.call('GET', '/nothing', { headers: { 'x-request-id': id } })
  const taken = await ask('abc-123.X_y')
  expect([taken.headers.get('x-request-id'), taken.body.error.request_id]).toEqual(['abc-123.X_y', 'abc-123.X_y'])
  for (const bad of ['a b', 'x'.repeat(129), '<script>', '"']) {
    expect((await ask(bad)).headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
  }
})

test('a revoked key is rejected within a second, though it was in use', async () => {
  const own = await service.createTenant()
  expect((await service.getHistory(own.prompt, own.key)).status).toBe(200)
  await revokeKey(service.services.db, service.clock, own.keyId)
  const revokedAt = performance.now()
  let status = 200
  while (status === 200) {
    const sentAt = performance.now()
    ;({ status } = await service.getHistory(own.prompt, own.key))
    // The time of sending counts: however slow the machine is, what is sent after the second is refused.
    if (sentAt - revokedAt >= 1_000) expect(status).toBe(401)
  }
  expect(status).toBe(401)
})
