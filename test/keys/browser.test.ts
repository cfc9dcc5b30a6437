// Keys that stand in web pages: only for pages of their origins, and perhaps for some prompts.
import { beforeAll, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { createPrompt } from '../../src/prompts/manage.ts'
import { useService, useTenant } from '../use.ts'
import { createAdmin, createBrowserKey, postFromPage, SHOP, usedBy } from './pages.ts'

const service = useService()
const tenant = useTenant(service)
let admin: string

beforeAll(async () => {
  admin = await createAdmin(service, tenant)
})

const browserKey = (more?: object) => createBrowserKey(service, admin, more)

const post = (key: string, headers?: Record<string, string>, prompt = tenant.prompt, value?: string) =>
  postFromPage(service, prompt, key, headers, value)

const corsOf = (headers: Headers) => [...headers.keys()].filter((name) => name.startsWith('access-control'))

test('a page of an allowed origin records a signal, and may read the answer', async () => {
  const { key } = await browserKey({ origins: ['https://*.example.com'] })
  const { status, headers } = await post(key, { origin: SHOP })
  expect(status).toBe(201)
  expect(headers.get('access-control-allow-origin')).toBe(SHOP)
  expect(headers.get('vary')).toBe('origin')
  expect(headers.get('access-control-expose-headers')).toContain('ratelimit')
  expect(headers.get('access-control-allow-credentials')).toBeNull()
})

test('a signal of a page has a body of at most 32 KiB, as it is or decompressed', async () => {
  const { key } = await browserKey()
  const send = (body: Uint8Array, encoding: object = {}) =>
    fetch(`${service.url}/api/v1/prompts/${tenant.prompt}/signals`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, origin: SHOP, 'content-type': 'application/json', ...encoding },
      body,
    })
  const signal = (bytes: number) => Buffer.from('{"value":"positive"}'.padEnd(bytes))
  expect((await send(signal(32 * 1024))).status).toBe(201)
  for (const answer of [
    await send(signal(32 * 1024 + 1)),
    await send(gzipSync(signal(32 * 1024 + 1)), { 'content-encoding': 'gzip' }),
  ]) {
    const { error } = (await answer.json()) as { error: { details: object[] } }
    expect([answer.status, error.details]).toEqual([422, [{ path: '', message: 'must be at most 32 KiB' }]])
  }
})

test('the page may read rejections too', async () => {
  const { key } = await browserKey({ monthly_limit: 0 })
  const origin = { origin: SHOP }
  const answers = [
    await service.call('GET', `/api/v1/prompts/${tenant.prompt}/history`, { key, headers: origin }),
    await post(key, origin, 'pmt_none'),
    await post(key, origin, tenant.prompt, 'maybe'),
    await post(key, origin),
  ]
  expect(answers.map(({ status }) => status)).toEqual([403, 404, 422, 429])
  expect(answers.map(({ headers }) => headers.get('access-control-allow-origin'))).toEqual(Array(4).fill(SHOP))
})

test.each([
  'null',
  'http://shop.example.com',
  'https://shop.example.com:8443',
  'https://example.com',
  'https://evilexample.com',
  'https://shop.example.com.evil.com',
  `${SHOP}, ${SHOP}`,
])('a page of the origin %s is rejected, and cannot read why', async (origin) => {
  const { key, id } = await browserKey({ origins: [SHOP, 'https://*.shop.example.com'] })
  const { status, headers, body } = await post(key, { origin })
  expect([status, body.error.code, body.error.scope]).toEqual([403, 'forbidden', undefined])
  expect(corsOf(headers)).toEqual([])
  expect(await usedBy(service, id)).toBe(0)
})

test.each([[[SHOP, 'https://evil.com']], [['https://evil.com', SHOP]], [[SHOP, SHOP]]])(
  'several Origin headers are rejected: %p',
  async (origins) => {
    const { key, id } = await browserKey()
    const lines = [
      `POST /api/v1/prompts/${tenant.prompt}/signals HTTP/1.1`,
      'Host: localhost',
      `Authorization: Bearer ${key}`,
      ...origins.map((origin) => `Origin: ${origin}`),
      'Content-Type: application/json',
      'Content-Length: 20',
      'Connection: close',
    ]
    const answer = await sendRaw(`${lines.join('\r\n')}\r\n\r\n{"value":"positive"}`)
    expect(answer).toStartWith('HTTP/1.1 403')
    expect(answer.toLowerCase()).not.toContain('access-control')
    expect(await usedBy(service, id)).toBe(0)
  },
)

function sendRaw(text: string): Promise<string> {
  const { hostname, port } = new URL(service.url)
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let answer = ''
  const socket = connect(Number(port), hostname, () => socket.write(text))
  socket.on('data', (chunk) => {
    answer += chunk
  })
  socket.on('close', () => resolve(answer))
  socket.on('error', reject)
  return promise
}

test('without an Origin, as from a program that is no browser, the key works', async () => {
  const { key } = await browserKey()
  const { status, headers } = await post(key)
  expect([status, corsOf(headers)]).toEqual([201, []])
})

test('no other key gets a CORS header, whatever the outcome', async () => {
  const answers = [
    await post(tenant.key, { origin: SHOP }),
    await post(tenant.key, { origin: SHOP }, 'pmt_none'),
    await post('psk_wrong', { origin: SHOP }),
    await service.call('GET', `/api/v1/prompts/${tenant.prompt}/history`, {
      key: tenant.key,
      headers: { origin: SHOP },
    }),
  ]
  expect(answers.map(({ status, headers }) => [status, corsOf(headers)])).toEqual([
    [201, []],
    [404, []],
    [401, []],
    [200, []],
  ])
})

test('a preflight needs no key, and is the same for every origin, prompt and key', async () => {
  const ask = (prompt: string, origin: string, headers: Record<string, string> = {}) =>
    service.call('OPTIONS', `/api/v1/prompts/${prompt}/signals`, {
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,content-type',
        ...headers,
      },
    })
  const answers = [
    await ask(tenant.prompt, SHOP),
    await ask('pmt_none', 'https://evil.com'),
    await ask('%00', 'null', { authorization: `Bearer ${tenant.key}` }),
  ]
  for (const { status, headers, text } of answers) {
    expect([status, text]).toEqual([204, ''])
    expect(Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control')))).toEqual({
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'POST',
      'access-control-allow-headers': 'authorization, content-type, idempotency-key, x-request-id',
      'access-control-max-age': '7200',
    })
  }
})

test('other routes answer no preflight', async () => {
  const path = `/api/v1/prompts/${tenant.prompt}/history`
  const headers = { origin: SHOP, 'access-control-request-method': 'GET' }
  const keyless = await service.call('OPTIONS', path, { headers })
  const keyed = await service.call('OPTIONS', path, { headers, key: tenant.key })
  expect([keyless.status, corsOf(keyless.headers)]).toEqual([401, []])
  expect([keyed.status, keyed.headers.get('allow'), corsOf(keyed.headers)]).toEqual([404, 'GET, HEAD, POST', []])
})

test('a prompt that the key is not limited to is answered like one that does not exist', async () => {
  const given = { org: tenant.org, name: 'other', id: null }
  const { id: other } = await createPrompt(service.services.db, service.clock, given)
  const { key } = await browserKey({ prompts: [tenant.prompt] })
  expect((await post(key)).status).toBe(201)
  const [theirs, none] = [await post(key, {}, other), await post(key, {}, 'pmt_none')]
  expect([theirs.status, none.status, theirs.body.error.message]).toEqual([404, 404, none.body.error.message])
})

test('a browser key is shown with its terms, and a rotation carries them over', async () => {
  const terms = { origins: [SHOP, 'https://*.example.org'], prompts: [tenant.prompt], monthly_limit: 7 }
  const made = await browserKey({ ...terms, origins: [...terms.origins, SHOP] })
  expect(made).toMatchObject({ ...terms, scopes: ['signals:write'] })
  const rotated = await service.call('POST', `/api/v1/keys/${made.id}/rotate`, { key: admin, json: {} })
  expect(rotated.body.data).toMatchObject(terms)
  const { body } = await service.call('GET', '/api/v1/keys?limit=2', { key: admin })
  expect(body.data).toMatchObject([
    { id: rotated.body.data.id, ...terms },
    { id: made.id, ...terms },
  ])
  expect((await post(rotated.body.data.key, { origin: 'https://a.example.org' })).status).toBe(201)
  const log = await service.call('GET', '/api/v1/audit?limit=2', { key: admin })
  expect(log.body.data[1].details).toMatchObject(terms)
})

test('a key is made one for browsers, and back, by a change', async () => {
  const plain = { name: 'server', scopes: ['signals:write'] }
  const { body } = await service.call('POST', '/api/v1/keys', { key: admin, json: plain })
  const change = (json: object) => service.call('PATCH', `/api/v1/keys/${body.data.id}`, { key: admin, json })
  expect((await change({ preset: 'browser', origins: [SHOP] })).body.data).toMatchObject({ origins: [SHOP] })
  expect((await change({ monthly_limit: 3 })).body.data).toMatchObject({ monthly_limit: 3 })
  expect((await change({ preset: 'app' })).body.error.details[0].path).toBe('/origins')
  expect((await change({ origins: null })).body.error.details[0].path).toBe('/monthly_limit')
  expect((await change({ origins: null, monthly_limit: null })).body.data).toMatchObject({ origins: null })
})

test.each([
  ['no origins', { preset: 'browser' }, '/origins'],
  ['an empty list of origins', { preset: 'browser', origins: [] }, '/origins'],
  ['null for origins', { preset: 'browser', origins: null }, '/origins'],
  ['an origin with a path', { preset: 'browser', origins: [SHOP, `${SHOP}/`] }, '/origins/1'],
  ['an origin for everybody', { preset: 'browser', origins: ['*'] }, '/origins/0'],
  ['origins that are no list', { preset: 'browser', origins: SHOP }, '/origins'],
  ['origins and the default scopes', { origins: [SHOP] }, '/origins'],
  ['origins and another preset', { preset: 'app', origins: [SHOP] }, '/origins'],
  ['an unknown prompt', { preset: 'browser', origins: [SHOP], prompts: ['pmt_none'] }, '/prompts/0'],
  ['a malformed prompt', { preset: 'browser', origins: [SHOP], prompts: ['\u0000'] }, '/prompts/0'],
  ['a negative limit', { preset: 'browser', origins: [SHOP], monthly_limit: -1 }, '/monthly_limit'],
  ['a limit that is too large', { preset: 'browser', origins: [SHOP], monthly_limit: 2 ** 31 }, '/monthly_limit'],
  ['prompts but no origins', { scopes: ['signals:write'], prompts: ['pmt_x'] }, '/prompts'],
  ['a limit but no origins', { scopes: ['signals:write'], monthly_limit: 5 }, '/monthly_limit'],
])('a browser key with %s is rejected, naming the field', async (_, json, path) => {
  const { status, body } = await service.call('POST', '/api/v1/keys', { key: admin, json: { name: 'x', ...json } })
  expect([status, body.error.details?.[0]?.path]).toEqual([422, path])
})

test('a prompt of another organisation is rejected like an unknown one', async () => {
  const other = await service.createTenant()
  const rejected = async (prompt: string) => {
    const json = { name: 'x', preset: 'browser', origins: [SHOP], prompts: [prompt] }
    const { status, body } = await service.call('POST', '/api/v1/keys', { key: admin, json })
    return [status, body.error.message, body.error.details]
  }
  expect(await rejected(other.prompt)).toEqual(await rejected('pmt_none'))
})
