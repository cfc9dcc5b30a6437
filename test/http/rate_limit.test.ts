import { expect, test } from 'bun:test'
import { createRateLimiter } from '../../src/http/rate_limit.ts'
import { eventually } from '../program.ts'
import type { Tenant } from '../service.ts'
import { useOwnService } from '../use.ts'

const perKey = 4
const perAddress = 6
const perMinute = (requests: number) => ({ requests, windowSeconds: 60 })

// The service trusts the test as its proxy, so that each caller can have another address.
const service = useOwnService({
  limits: {
    TRUSTED_PROXIES: '127.0.0.1',
    RATE_LIMIT_PER_KEY: `${perKey}/min`,
    RATE_LIMIT_PER_ADDRESS: `${perAddress}/min`,
  },
})

let addresses = 0

/** The header of a proxy, with an address that no other caller has. */
function fromElsewhere() {
  addresses += 1
  return { 'x-forwarded-for': `198.18.0.${addresses}` }
}

const getHistory = ({ prompt, key }: Tenant, headers = fromElsewhere()) =>
  service.get(`/prompts/${prompt}/history`, key, headers)

const postSignal = ({ prompt, key }: Tenant) =>
  service.post(`/prompts/${prompt}/signals`, key, { value: 'positive' }, fromElsewhere())

async function repeat<T>(times: number, work: () => Promise<T>): Promise<T[]> {
  const results: T[] = []
  for (let count = 0; count < times; count += 1) results.push(await work())
  return results
}

const limitsIn = ({ headers }: { headers: Headers }) => [headers.get('ratelimit-policy'), headers.get('ratelimit')]

async function countLimited(): Promise<Record<string, number>> {
  const text = service.services.metrics.text()
  const values = [...text.matchAll(/^prompt_signals_requests_limited_total\{limited_by="(\w+)"\} (\d+)$/gm)]
  return Object.fromEntries(values.map(([, by, value]) => [by, Number(value)]))
}

test('over the rate of the key the response is a 429 that says how long to wait, and is counted', async () => {
  service.clock.set('2026-11-15T12:00:20.250Z')
  const before = await countLimited()
  const tenant = await service.createTenant()
  const first = await getHistory(tenant)
  expect([first.status, ...limitsIn(first)]).toEqual([200, '"burst";q=4;w=60', '"burst";r=3;t=15'])
  const others = await repeat(perKey - 1, () => getHistory(tenant))
  expect(others.map(({ status }) => status)).toEqual([200, 200, 200])
  const limited = await postSignal(tenant)
  expect({ status: limited.status, body: limited.body }).toEqual({
    status: 429,
    body: {
      error: {
        code: 'rate_limited',
        message: 'More than 4 requests in 60 s with this API key. Wait until resets_at.',
        limited_by: 'key_rate',
        limit: 4,
        used: 4,
        resets_at: '2026-11-15T12:00:35.250Z',
        request_id: expect.any(String),
      },
    },
  })
  expect(limitsIn(limited)).toEqual(['"burst";q=4;w=60', '"burst";r=0;t=60'])
  expect(limited.headers.get('retry-after')).toBe('15')
  expect(await countLimited()).toEqual({ ...before, key_rate: (before.key_rate as number) + 1 })
  // Another key of the same organisation has a separate rate.
  const { key } = await service.createKey(tenant)
  expect((await getHistory({ ...tenant, key })).status).toBe(200)
})

test('the next request passes at the time that was told, and not a moment before', () => {
  let now = new Date('2026-11-15T12:00:20.250Z')
  const limiter = createRateLimiter(perMinute(7), { clock: { now: () => now }, name: 'x' })
  for (let count = 0; count < 7; count += 1) expect(limiter.take('one').isExceeded).toBe(false)
  const limited = limiter.take('one')
  expect([limited.isExceeded, limited.secondsToNext, limited.nextAt()]).toEqual([true, 9, '2026-11-15T12:00:28.822Z'])
  now = new Date('2026-11-15T12:00:28.821Z')
  expect(limiter.take('one').isExceeded).toBe(true)
  now = new Date('2026-11-15T12:00:28.822Z')
  expect([limiter.take('one'), limiter.take('one')].map(({ isExceeded }) => isExceeded)).toEqual([false, true])
})

test('a burst never exceeds the rate, a steady client is never limited, and a clock set back costs no time', () => {
  let now = new Date()
  const limiter = createRateLimiter(perMinute(60), { clock: { now: () => now }, name: 'x' })
  const passedAt = (at: string, times = 200) => {
    now = new Date(at)
    return Array.from({ length: times }, () => limiter.take('one')).filter(({ isExceeded }) => !isExceeded).length
  }
  expect(passedAt('2026-11-15T12:00:59.000Z')).toBe(60)
  expect(passedAt('2026-11-15T12:01:00.000Z')).toBe(1)
  expect(passedAt('2026-11-15T12:01:30.999Z')).toBe(30)
  expect(passedAt('2026-11-15T12:01:31.000Z')).toBe(1)
  for (let second = 10; second < 60; second += 1) expect(passedAt(`2026-11-15T13:00:${second}.000Z`, 1)).toBe(1)
  expect(passedAt('2026-11-15T13:00:59.000Z')).toBe(59)
  expect(passedAt('2026-11-15T09:00:00.000Z', 1)).toBe(0)
  expect(passedAt('2026-11-15T09:00:05.000Z')).toBe(5)
})

test('over the rate of an address nothing is checked, not even the key, and other addresses are served', async () => {
  service.clock.set('2026-11-15T13:00:00.000Z')
  const before = await countLimited()
  const tenant = await service.createTenant()
  const address = fromElsewhere()
  // Unknown routes count too, and so do those that the framework routes.
  const unknown = ['GET /nothing', 'HEAD /keys/', 'PUT ', ...new Array(perAddress - 3).fill('GET /keys')]
  for (const [index, request] of unknown.entries()) {
    const [method, path] = request.split(' ')
    const { status, headers } = await service.call(method, `/api/v1${path}`, { headers: address })
    expect({ request, status, left: headers.get('ratelimit') }).toEqual({
      request,
      status: 401,
      left: `"burst";r=${5 - index};t=${10 * (index + 1)}`,
    })
  }
  for (const key of [tenant.key, 'psk_wrong']) {
    const { status, headers, body } = await getHistory({ ...tenant, key }, address)
    expect([status, headers.get('retry-after'), body.error]).toEqual([
      429,
      '10',
      {
        code: 'rate_limited',
        message: 'More than 6 requests in 60 s from this address. Wait until resets_at.',
        limited_by: 'address_rate',
        limit: 6,
        used: 6,
        resets_at: '2026-11-15T13:00:10.000Z',
        request_id: expect.any(String),
      },
    ])
  }
  expect((await service.call('HEAD', '/api/v1/keys/', { headers: address })).status).toBe(429)
  expect(await countLimited()).toEqual({ ...before, address_rate: (before.address_rate as number) + 3 })
  expect((await getHistory(tenant)).status).toBe(200)
  // Health, metrics, documentation, preflights and deliveries have no limit.
  const ask = async (method: string, path: string) => (await service.call(method, path, { headers: address })).status
  const paths = ['/livez', '/readyz', '/metrics', '/docs', '/docs/json', '/nothing']
  expect(await Promise.all(paths.map((path) => ask('GET', path)))).toEqual([200, 200, 200, 200, 200, 404])
  expect(await ask('OPTIONS', '/api/v1/prompts/pmt_x/signals')).toBe(204)
  expect(await ask('POST', '/webhooks/github/org_none')).toBe(401)
})

test('IPv6 addresses of one network are counted together', async () => {
  service.clock.set('2026-11-15T13:10:00.000Z')
  const ask = async (address: string) =>
    (await service.call('GET', '/api/v1/keys', { headers: { 'x-forwarded-for': address } })).status
  let host = 0
  const statuses = await repeat(perAddress + 1, () => ask(`2001:db8:7:7::${++host}`))
  expect(statuses).toEqual([...new Array(perAddress).fill(401), 429])
  expect(await ask('2001:db8:7:8::1')).toBe(401)
})

test('a missing scope is answered before the rate of the key, and does not count towards it', async () => {
  service.clock.set('2026-11-15T13:40:00.000Z')
  const tenant = await service.createTenant()
  const { key } = await service.createKey(tenant, ['usage:read'])
  const answers = await repeat(perKey + 1, () => getHistory({ ...tenant, key }))
  expect(answers.map(({ status }) => status)).toEqual(new Array(perKey + 1).fill(403))
})

test('the headers show the month before the rate, and a full month is answered as such', async () => {
  service.clock.set('2026-11-30T23:59:00.000Z')
  const tenant = await service.createTenant(1)
  const [recorded, limited] = [await postSignal(tenant), await postSignal(tenant)]
  expect([recorded.status, ...limitsIn(recorded)]).toEqual([
    201,
    '"signals";q=1;w=2592000, "burst";q=4;w=60',
    '"signals";r=0;t=60, "burst";r=3;t=15',
  ])
  expect([limited.status, limited.body.error.limited_by, ...limitsIn(limited)]).toEqual([
    429,
    'organisation_month',
    '"signals";q=1;w=2592000, "burst";q=4;w=60',
    '"signals";r=0;t=60, "burst";r=2;t=30',
  ])
})

// test/once/rate_limiter.test.ts has the replicas that share them.
test('the requests of a key are shared through Redis, until they have leaked', async () => {
  service.clock.set('2026-11-15T13:50:00.000Z')
  const tenant = await service.createTenant()
  const { id } = await service.services.verifyKey(`Bearer ${tenant.key}`)
  for (let sent = 1; sent <= perKey; sent += 1) {
    expect((await getHistory(tenant)).status).toBe(200)
    // A request takes fifteen seconds to leak, and the bucket is kept until it is empty.
    await eventually(async () => Math.ceil((await service.testRedis.pttl(`rate:key:60:{${id}}`)) / 15_000), sent)
  }
})

test('an invalid or overfull bucket in Redis is replaced', async () => {
  const rate = { requests: 4, windowSeconds: 3_600 }
  const limiter = createRateLimiter(rate, { clock: service.clock, name: 'odd', redis: service.redis })
  const far = String((Date.now() + 10 * 86_400_000) * 1_000)
  await service.testRedis.mset('rate:odd:3600:{word}', 'word', 'rate:odd:3600:{far}', far)
  await service.testRedis.lpush('rate:odd:3600:{list}', 'a', 'b')
  for (const subject of ['word', 'list', 'far']) limiter.take(subject)
  const quarters = async (subject: string) =>
    Math.ceil((await service.testRedis.pttl(`rate:odd:3600:{${subject}}`)) / 900_000)
  await eventually(() => Promise.all(['word', 'list', 'far'].map(quarters)), [1, 1, 80])
})

test('a tool of an agent counts for the address of the agent', async () => {
  const { key } = await service.createTenant()
  const address = fromElsewhere()
  const headers = { ...address, accept: 'application/json, text/event-stream', 'content-type': 'application/json' }
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get_usage', arguments: {} } }
  const body = JSON.stringify(message)
  await fetch(`${service.url}/mcp`, { method: 'POST', headers: { ...headers, authorization: `Bearer ${key}` }, body })
  expect(limitsIn(await service.get('/keys', 'unknown', address))[1]).toStartWith('"burst";r=3;')
})
