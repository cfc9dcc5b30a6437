import { beforeAll, expect, test } from 'bun:test'
import { revokeKey } from '../../src/keys/manage.ts'
import { generateKey } from '../../src/keys/verify.ts'
import { scopes } from '../../src/lib/scopes.ts'
import { entry, type TestService } from '../service.ts'
import { postText } from '../signals/fixtures.ts'
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

test('every kind of bad key gets the same answer', async () => {
  const typo = tenant.key.slice(0, -1) + (tenant.key.endsWith('0') ? '1' : '0')
  const { id, key: revoked } = await service.createKey(tenant)
  await revokeKey(service.services.db, service.clock, id)
  const { key: expired } = await service.createKey(tenant, undefined, { expires_at: new Date(Date.now() + 3_600_000) })
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
    ['get', 'history'],
    ['get', 'signals'],
    ['get', 'stats'],
    ['post', 'signals'],
  ] as const) {
    const answers = await Promise.all(ids.map((id) => service[method](`/prompts/${id}/${last}`, tenant.key)))
    const first = shape(answers[0] as never)
    expect(first.status).toBe(404)
    for (const answer of answers) expect(shape(answer)).toEqual(first)
  }
})

test('the checks come in the order key, prompt, body, limit', async () => {
  const { prompt, key } = await service.createTenant(0)
  for (const [what, json, last] of [
    ['signals', { value: 'positive' }, 429],
    ['history', entry(), 201],
  ] as const) {
    const statusOf = async (prompt: string, key: string, body = JSON.stringify(json)) =>
      (await postText(service, { prompt, key }, body, { path: what })).status
    expect(await statusOf('pmt_none', 'psk_wrong', '{')).toBe(401)
    expect(await statusOf(prompt, 'psk_wrong', '{')).toBe(401)
    expect(await statusOf('pmt_none', key, '{')).toBe(404)
    expect(await statusOf('pmt_none', key)).toBe(404)
    expect(await statusOf(prompt, key, '{')).toBe(422)
    expect(await statusOf(prompt, key)).toBe(last)
  }
})

test.each([
  ['GET', '/api/v1', null],
  ['GET', '/api/v1/', null],
  ['GET', '/api/v1/prompt', null],
  ['POST', '/api/v1/nothing/here', null],
  ['DELETE', '/api/v1/prompts', 'GET, HEAD, POST'],
  ['DELETE', '/api/v1/prompts/pmt_x/history', 'GET, HEAD, POST'],
  ['PUT', '/api/v1/prompts/pmt_x/signals', 'OPTIONS, POST, GET, HEAD, DELETE'],
  ['OPTIONS', '/api/v1/prompts/pmt_x/history/', 'GET, HEAD, POST'],
  ['DELETE', '/api/v1/prompts/pmt_x/stats', 'GET, HEAD'],
])('%s %s is unknown: 404 with a key and the methods %p, 401 without', async (method, path, allow) => {
  const known = await service.call(method, path, { key: tenant.key })
  expect([known.status, known.body.error.code, known.headers.get('allow')]).toEqual([404, 'not_found', allow])
  const unknown = await service.call(method, path)
  expect([unknown.status, unknown.body.error.code]).toEqual([401, 'unauthorized'])
  expect(unknown.headers.get('allow')).toBeNull()
})

test.each([
  ['GET', '/nothing', null],
  ['POST', '/nothing', null],
  ['GET', '/prompt', null],
  ['GET', '/settings/nothing', null],
  ['GET', '/console/main.js', null],
  ['GET', '/api/v2/prompts/pmt_x/history', null],
  ['GET', '/%ff', null],
  ['POST', '/docs', 'GET, HEAD'],
  ['PUT', '/livez', 'GET, HEAD'],
  ['DELETE', '/', 'GET, HEAD'],
  ['GET', '/webhooks/github/org_x', 'POST'],
])('%s %s is unknown to everyone: 404 with the methods %p', async (method, path, allow) => {
  const { status, headers, body } = await service.call(method, path)
  expect([status, body.error.code, headers.get('allow')]).toEqual([404, 'not_found', allow])
})

const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
const parent = '00f067aa0ba902b7'
const generated = expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f-]{27}$/)

test.each([
  ['abc-123.X_y', `00-${trace}-${parent}-01`, 'abc-123.X_y'],
  ['a b', `00-${trace}-${parent}-01`, trace],
  ['', `cc-${trace}-${parent}-01`, trace],
  ['', `cc-${trace}-${parent}-01-what-the-future-will-be-like`, trace],
  ['x'.repeat(129), '', generated],
  ['<script>', '', generated],
  ['"', `00-${trace}-${parent}-01-more`, generated],
  ['', `ff-${trace}-${parent}-01`, generated],
  ['', `00-${'0'.repeat(32)}-${parent}-01`, generated],
  ['', `00-${trace}-${'0'.repeat(16)}-01`, generated],
  ['', `00-${trace.toUpperCase()}-${parent}-01`, generated],
  ['', `00-${trace}-${parent}`, generated],
  ['', `cc-${trace}-${parent}-01.more`, generated],
])('the id of a request with X-Request-Id %p and traceparent %p is %p', async (requestId, traceparent, id) => {
  const { headers, body } = await service.call('GET', '/nothing', {
    headers: { 'x-request-id': requestId, traceparent },
  })
  expect(headers.get('x-request-id')).toEqual(id as string)
  expect(body.error.request_id).toBe(headers.get('x-request-id'))
})

const lists = ['keys', 'prompts', 'impact', 'audit']
let key: string
let other: string

/** A key that may read every list of an organisation that has four rows or more in each. */
async function createReader(): Promise<string> {
  const reader = await service.createKey(await service.createTenant(), [...scopes], { name: 'reader' })
  for (const list of ['keys', 'prompts']) {
    for (const name of ['one', 'two', 'three']) await service.post(`/${list}`, reader.key, { name })
  }
  return reader.key
}

beforeAll(async () => {
  ;[key, other] = [await createReader(), await createReader()]
})

test.each([
  ['keys', ['three', 'two', 'one', 'reader', 'test']],
  ['prompts', ['three', 'two', 'one', 'test']],
])('the list of %s goes by cursor, newest first, to the end; a forged cursor is rejected', async (list, expected) => {
  const names: string[] = []
  let path: string | undefined = `/${list}?limit=2`
  while (path) {
    const { body, headers } = await service.get(path, key)
    names.push(...body.data.map(({ name }: { name: string }) => name))
    const { per_page, next_cursor: cursor } = body.pagination
    expect(per_page).toBe(2)
    path = cursor === null ? undefined : `/${list}?limit=2&cursor=${cursor}`
    expect(headers.get('link')).toBe(path === undefined ? null : `</api/v1${path}>; rel="next"`)
  }
  expect(names).toEqual(expected)
  for (const cursor of ['', 'x', '!', 'MQ==', '%00']) {
    const { status, body } = await service.get(`/${list}?cursor=${cursor}`, key)
    expect({ cursor, status, path: body.error.details?.[0]?.path }).toEqual({ cursor, status: 422, path: 'cursor' })
  }
})

test.each(lists)(
  'a cursor of the list of %s opens no other list, and not that of another organisation',
  async (list) => {
    const { next_cursor: cursor } = (await service.get(`/${list}?limit=1`, key)).body.pagination
    for (const path of lists) {
      const statusOf = async (caller: string) => (await service.get(`/${path}?cursor=${cursor}`, caller)).status
      expect({ path, status: await statusOf(key) }).toEqual({ path, status: path === list ? 200 : 422 })
      expect({ path, status: await statusOf(other) }).toEqual({ path, status: 422 })
    }
  },
)
