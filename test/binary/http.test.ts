import { afterAll, beforeAll, expect, test } from 'bun:test'
import { redisPrefix, redisUrl } from '../harness.ts'
import { createTenant } from '../program.ts'
import { exchange, formatRequest } from '../socket.ts'
import { useProgram } from '../use.ts'

const redis = () => ({ REDIS_URL: redisUrl(), REDIS_PREFIX: redisPrefix() })
const { client, operator, server, tenant } = useProgram(redis)

const history = (query = '') => `/api/v1/prompts/${tenant.prompt}/history${query}`

beforeAll(async () => {
  await operator.one('orgs', 'set-plan', tenant.org, 'free', '--monthly-limit', '2')
  await operator.one(
    ...['history', 'record', '--prompt', tenant.prompt, '--action', 'deployed', '--commit-sha', 'c0ffee12'],
    ...['--user-name', 'Ada', '--user-email', 'ada@example.com', '--branch', 'main'],
    ...['--created-at', '2026-11-14T23:35:00Z'],
  )
})

afterAll(() => expect(server.stderr()).toBe(''))

/** The names of the headers, but for those that every answer of an HTTP server has. */
const named = ({ headers }: { headers: Headers }) =>
  [...headers.keys()].filter((name) => !['date', 'content-length', 'content-type'].includes(name)).sort()

const envelope = (code: string, more: object = {}) => ({
  error: { code, message: expect.any(String), ...more, request_id: expect.any(String) },
})

test('200 with the page and the links of the history', async () => {
  const answer = await client.getHistory(tenant.prompt, tenant.key)
  expect([answer.status, named(answer)]).toEqual([200, ['cache-control', 'etag', 'link', 'vary', 'x-request-id']])
  expect(answer.headers.get('content-type')).toBe('application/json')
  expect(answer.headers.get('link')).toBe(
    `<${history()}?page=1&limit=25>; rel="first", <${history()}?page=1&limit=25>; rel="last"`,
  )
  expect(answer.body).toEqual({
    data: [
      {
        id: expect.any(Number),
        action: 'deployed',
        user: { name: 'Ada', email: 'ada@example.com' },
        commit_sha: 'c0ffee12',
        pr_number: null,
        pr_url: null,
        branch_name: 'main',
        created_at: '2026-11-14T23:35:00.000Z',
      },
    ],
    pagination: { current_page: 1, total_pages: 1, total_count: 1, per_page: 25 },
  })
})

test('201 until the limit, then 429, each with what is left', async () => {
  const sentAt = Date.now()
  const first = await client.postSignal(tenant.prompt, tenant.key, { value: 'negative', metadata: { session: 'a' } })
  expect(first.body).toEqual({
    data: { id: expect.any(Number), value: 'negative', created_at: expect.stringMatching(/^.{10}T.{12}Z$/) },
  })
  expect(Date.parse(first.body.data.created_at)).toBeWithin(sentAt, Date.now() + 1)
  const second = await client.postSignal(tenant.prompt, tenant.key)
  expect([second.status, named(second)]).toEqual([201, ['ratelimit', 'ratelimit-policy', 'x-request-id']])
  expect(second.headers.get('ratelimit')).toMatch(/^"signals";r=0;t=\d+$/)

  const third = await client.postSignal(tenant.prompt, tenant.key)
  expect([third.status, named(third)]).toEqual([429, ['ratelimit', 'ratelimit-policy', 'retry-after', 'x-request-id']])
  expect(third.body).toEqual(
    envelope('rate_limited', {
      limited_by: 'organisation_month',
      limit: 2,
      used: 2,
      resets_at: expect.stringMatching(/-01T00:00:00\.000Z$/),
    }),
  )
})

test.each([
  ['GET', '/api/v1/prompts/pmt_none/history'],
  ['POST', '/api/v1/prompts/pmt_none/signals'],
  ['GET', '/api/v1/nothing'],
  ['GET', '/nothing'],
])('404 for what does not exist: %s %s', async (method, path) => {
  const answer = await client.call(method, path, { key: tenant.key })
  expect([answer.status, named(answer), answer.body]).toEqual([404, ['x-request-id'], envelope('not_found')])
})

test.each([
  ['DELETE', '/api/v1/prompts/pmt_none/signals', 'OPTIONS, POST, GET, HEAD'],
  ['POST', '/readyz', 'GET, HEAD'],
])('404 for another method than those it names: %s %s', async (method, path, allow) => {
  const answer = await client.call(method, path, { key: tenant.key })
  expect([answer.status, named(answer)]).toEqual([404, ['allow', 'x-request-id']])
  expect([answer.headers.get('allow'), answer.body]).toEqual([allow, envelope('not_found')])
})

test('says that it is alive, and ready with its database and Redis', async () => {
  const [live, ready] = await Promise.all([client.call('GET', '/livez'), client.call('GET', '/readyz')])
  expect([live.status, live.body]).toEqual([200, { status: 'alive' }])
  expect([ready.status, ready.body]).toEqual([200, { ready: true, database: 'up', redis: 'up' }])
})

test('serves its documentation, the page and all that it loads', async () => {
  const document = await client.call('GET', '/docs/json')
  const paths = ['/api/v1/prompts/{prompt_id}/history', '/api/v1/prompts/{prompt_id}/signals']
  expect(Object.keys(document.body.paths)).toEqual(expect.arrayContaining(paths))
  const page = await client.call('GET', '/docs')
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(page.headers.get('content-security-policy')).toStartWith("default-src 'none'")
  const loaded = [...page.text.matchAll(/(?:src|rel="stylesheet" href)="([^"]+)"/g)].map(([, path]) => path as string)
  expect(loaded).toHaveLength(3)
  for (const path of loaded) {
    const { status, text } = await client.call('GET', new URL(path, `${server.url}/docs`).pathname)
    expect([path, status, text.length > 100]).toEqual([path, 200, true])
  }
})

test('HEAD is answered like GET, without a body', async () => {
  for (const path of [history(), '/docs', '/docs/json', '/livez', '/readyz', '/nothing']) {
    const options = { key: tenant.key, headers: { 'accept-encoding': 'identity' } }
    const get = await client.call('GET', path, options)
    const head = await client.call('HEAD', path, options)
    expect([path, head.status, named(head), head.text]).toEqual([path, get.status, named(get), ''])
    expect(head.headers.get('content-length')).toBe(`${Buffer.byteLength(get.text)}`)
  }
})

test('serves twenty concurrent connections, each for many requests', async () => {
  const other = await createTenant(operator, 400)
  const posted = await Promise.all(
    Array.from({ length: 20 }, async () => {
      const ids: number[] = []
      for (let count = 0; count < 20; count += 1) {
        ids.push((await client.postSignal(other.prompt, other.key)).body.data.id)
      }
      return ids
    }),
  )
  expect(new Set(posted.flat()).size).toBe(400)
  expect((await client.postSignal(other.prompt, other.key)).body.error.used).toBe(400)
})

test('the body of a delivery is waited for only where there is a webhook', async () => {
  const headers = ['Content-Length: 26000000', `X-Hub-Signature-256: sha256=${'0'.repeat(64)}`]
  const answer = await exchange(server.url, formatRequest('POST', '/webhooks/github/org_nobody', headers, '{'))
  expect(answer).toStartWith('HTTP/1.1 401 ')
})
