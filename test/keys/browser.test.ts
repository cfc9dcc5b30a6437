// Keys that stand in web pages: only for pages of their origins, and perhaps for some prompts.
import { expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import type { Scope } from '../../src/lib/scopes.ts'
import { erasePrompt } from '../../src/prompts/erase.ts'
import { requirePrompt } from '../../src/prompts/find.ts'
import { invalid } from '../client.ts'
import { postText } from '../signals/fixtures.ts'
import { exchange, formatSignal } from '../socket.ts'
import { SHOP, useBrowserKeys, usedBy } from './pages.ts'

const { service, tenant, admin, browserKey, rotate, change, post } = useBrowserKeys()

const corsOf = (headers: Headers) =>
  Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control')))

test('a page of an allowed origin may read every answer; no other caller gets a CORS header', async () => {
  const { key } = await browserKey({ origins: ['https://*.example.com'] })
  const { key: full } = await browserKey({ monthly_limit: 0 })
  const origin = { origin: SHOP }
  const getHistory = (key: string) => service.get(`/prompts/${tenant.prompt}/history`, key, origin)
  const readable = {
    'access-control-allow-origin': SHOP,
    'access-control-expose-headers': expect.stringContaining('ratelimit'),
  }
  for (const [answer, status, cors] of [
    [await post(key, origin), 201, readable],
    [await getHistory(full), 403, readable],
    [await post(full, origin, 'pmt_none'), 404, readable],
    [await post(full, origin, tenant.prompt, 'maybe'), 422, readable],
    [await post(full, origin), 429, readable],
    [await post(key), 201, {}],
    [await post(tenant.key, origin), 201, {}],
    [await post(tenant.key, origin, 'pmt_none'), 404, {}],
    [await post('psk_wrong', origin), 401, {}],
    [await getHistory(tenant.key), 200, {}],
  ] as const) {
    expect({ status: answer.status, cors: corsOf(answer.headers) }).toEqual({ status, cors })
    if (cors === readable) expect(answer.headers.get('vary')).toBe('origin')
  }
})

test('a signal of a page has a body of at most 32 KiB, as it is or decompressed', async () => {
  const { key } = await browserKey()
  const send = (body: Uint8Array<ArrayBuffer>, encoding: Record<string, string> = {}) =>
    postText(service, { ...tenant, key }, body, { origin: SHOP, ...encoding })
  const signal = (bytes: number) => Buffer.from('{"value":"positive"}'.padEnd(bytes))
  expect((await send(signal(32 * 1024))).status).toBe(201)
  const large = signal(32 * 1024 + 1)
  for (const answer of [await send(large), await send(gzipSync(large), { 'content-encoding': 'gzip' })]) {
    expect(answer).toMatchObject(invalid(['', 'must be at most 32 KiB']))
  }
})

test.each([
  [['null']],
  [['https://shop.example.com.evil.com']],
  [[`${SHOP}, ${SHOP}`]],
  [[SHOP, 'https://evil.com']],
  [['https://evil.com', SHOP]],
  [[SHOP, SHOP]],
])('a page of the origins %p is rejected, and cannot read why', async (origins) => {
  const { key, id } = await browserKey({ origins: [SHOP, 'https://*.shop.example.com'] })
  const headers = origins.map((origin) => `Origin: ${origin}`)
  const answer = await exchange(service.url, formatSignal({ ...tenant, key }, headers))
  expect(answer).toStartWith('HTTP/1.1 403')
  expect(answer.toLowerCase()).not.toContain('access-control')
  expect(answer).toContain('"code":"forbidden"')
  expect(answer).not.toContain('"scope"')
  expect(await usedBy(service, id)).toBe(0)
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
  for (const { status, headers, text } of [
    await ask(tenant.prompt, SHOP),
    await ask('pmt_none', 'https://evil.com'),
    await ask('%00', 'null', { authorization: `Bearer ${tenant.key}` }),
  ]) {
    expect({ status, text }).toEqual({ status: 204, text: '' })
    expect(corsOf(headers)).toEqual({
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'POST, DELETE',
      'access-control-allow-headers': 'authorization, content-type, idempotency-key, x-request-id',
      'access-control-max-age': '7200',
    })
  }
})

test('a prompt that the key is not limited to is answered like one that does not exist', async () => {
  const other = (await service.post('/prompts', admin.key, { name: 'other' })).body.data.id
  const { key } = await browserKey({ prompts: [tenant.prompt] })
  expect((await post(key)).status).toBe(201)
  const [theirs, none] = [await post(key, {}, other), await post(key, {}, 'pmt_none')]
  expect(none.status).toBe(404)
  expect(theirs).toMatchObject({ status: 404, body: { error: { message: none.body.error.message } } })
})

test('visitors can neither take nor find the Idempotency-Keys of a server, and a rotation keeps their own', async () => {
  const [page, other] = [await browserKey(), await browserKey()]
  const rotated = await rotate(page.id)
  const idempotencyKey = 'x'.repeat(255)
  const send = async (key: string, value: string) => {
    const { status, headers } = await post(key, { 'idempotency-key': idempotencyKey }, tenant.prompt, value)
    return [status, headers.get('idempotent-replayed')]
  }
  expect(await send(page.key, 'negative')).toEqual([201, null])
  expect(await send(other.key, 'positive')).toEqual([201, null])
  expect(await send(tenant.key, 'positive')).toEqual([201, null])
  expect(await send(tenant.key, 'positive')).toEqual([201, 'true'])
  expect(await send(rotated.key, 'negative')).toEqual([201, 'true'])
  expect(await send(page.key, 'positive')).toEqual([422, null])
})

test('a browser key is shown with its terms, and a rotation carries them over', async () => {
  const terms = { origins: [SHOP, 'https://*.example.org'], prompts: [tenant.prompt], monthly_limit: 7 }
  const made = await browserKey({ ...terms, origins: [...terms.origins, SHOP] })
  expect(made).toMatchObject({ ...terms, scopes: ['signals:write'] })
  const rotated = await rotate(made.id)
  expect(rotated).toMatchObject(terms)
  expect((await service.get('/keys?limit=2', admin.key)).body.data).toMatchObject([
    { id: rotated.id, ...terms },
    { id: made.id, ...terms },
  ])
  expect((await post(rotated.key, { origin: 'https://a.example.org' })).status).toBe(201)
  expect((await service.get('/audit?limit=2', admin.key)).body.data[1].details).toMatchObject(terms)
})

test('a change turns a key into a browser key, and back', async () => {
  const { id } = await service.createKey(tenant, ['signals:write'])
  // The replacement of an ordinary key is not counted with it.
  expect(await rotate(id)).toMatchObject({ key: expect.stringMatching(/^psk_/) })
  const changed = async (json: object) => (await change(id, json)).body
  expect((await changed({ preset: 'browser', origins: [SHOP] })).data).toMatchObject({ origins: [SHOP] })
  expect((await changed({ monthly_limit: 3 })).data).toMatchObject({ monthly_limit: 3 })
  expect((await changed({ preset: 'app' })).error.details[0].path).toBe('/origins')
  expect((await changed({ origins: null })).error.details[0].path).toBe('/monthly_limit')
  expect((await changed({ origins: null, monthly_limit: null })).data).toMatchObject({ origins: null })
})

test('a key that expires does not change the restrictions of a key that outlives it', async () => {
  const browser = await service.createKey(tenant, ['signals:write'], { origins: [SHOP], monthly_limit: 3 })
  const scopes: Scope[] = ['keys:write', 'signals:write']
  const brief = await service.createKey(tenant, scopes, { expires_at: new Date(Date.now() + 60_000) })
  for (const more of [{ monthly_limit: null }, { origins: ['https://example.com'] }, { prompts: null }]) {
    expect(await service.patch(`/keys/${browser.id}`, brief.key, more)).toMatchObject(invalid('/expires_at'))
  }
  expect((await service.patch(`/keys/${browser.id}`, brief.key, { name: 'Shop' })).status).toBe(200)
})

const noOrigin = 'must be an origin as browsers send it, such as https://example.com or https://*.example.com'
const otherScopes = 'must be absent unless signals:write is the only scope'
const ordinary = { preset: 'app', origins: undefined }

test.each([
  [{ origins: undefined }, '/origins', 'must be given with the preset browser'],
  [{ origins: null }, '/origins', 'must be given with the preset browser'],
  [{ origins: [SHOP, `${SHOP}/`] }, '/origins/1', noOrigin],
  [{ origins: ['*'] }, '/origins/0', noOrigin],
  [{ preset: undefined }, '/origins', otherScopes],
  [{ preset: 'app' }, '/origins', otherScopes],
  [{ prompts: ['pmt_none'] }, '/prompts/0', 'must be a prompt of the organisation'],
  [{ prompts: ['\u0000'] }, '/prompts/0', 'must be a prompt of the organisation'],
  [{ ...ordinary, prompts: ['pmt_x'] }, '/prompts', 'must be absent for a key without origins'],
  [{ ...ordinary, monthly_limit: 5 }, '/monthly_limit', 'must be absent for a key without origins'],
  [{ origins: [] }, '/origins', 'must not be empty'],
  [{ origins: Array(2_000).fill(SHOP) }, '/origins', 'must have at most 100 items'],
  [{ origins: [SHOP, 7] }, '/origins/1', 'must be a string'],
  [{ origins: SHOP }, '/origins', 'must be an array or null'],
  [{ prompts: [] }, '/prompts', 'must not be empty'],
  [{ monthly_limit: -1 }, '/monthly_limit', 'must be at least 0'],
  [{ monthly_limit: 2 ** 31 }, '/monthly_limit', 'must be at most 2147483647'],
  [{ monthly_limit: 1.5 }, '/monthly_limit', 'must be an integer or null'],
  [{ expires_at: 7 }, '/expires_at', 'must be a string or null'],
])('a browser key with %p is rejected, and what is wrong with it is said', async (more, path, message) => {
  const json = { name: 'x', preset: 'browser', origins: [SHOP], ...more }
  expect(await service.post('/keys', admin.key, json)).toMatchObject(invalid([path, message]))
})

test('a key can be limited and ended also when one of its prompts was erased', async () => {
  const erased = await service.createPrompt(tenant, 'erased')
  const { id } = await browserKey({ prompts: [tenant.prompt, erased] })
  await erasePrompt(service.services.db, service.clock, await requirePrompt(service.services.db.sql, erased))
  expect((await change(id, { monthly_limit: 10 })).body.data).toMatchObject({ monthly_limit: 10 })
  const unknown = invalid(['/prompts/0', 'must be a prompt of the organisation'])
  expect(await change(id, { prompts: [erased] })).toMatchObject(unknown)
})

test('a prompt of another organisation is rejected like an unknown one', async () => {
  const { prompt } = await service.createTenant()
  const json = { name: 'x', preset: 'browser', origins: [SHOP], prompts: [prompt] }
  const unknown = invalid(['/prompts/0', 'must be a prompt of the organisation'])
  expect(await service.post('/keys', admin.key, json)).toMatchObject(unknown)
})
