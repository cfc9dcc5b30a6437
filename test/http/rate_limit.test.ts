import { expect, test } from 'bun:test'
import { createApp } from '../../src/app.ts'
import { createServices } from '../../src/deps.ts'
import { createRateLimiter } from '../../src/http/rate_limit.ts'
import { createKey } from '../../src/keys/manage.ts'
import { createLog } from '../../src/log.ts'
import { comingFrom, newAddress, trustTheTest } from '../addresses.ts'
import { eventually } from '../program.ts'
import type { Tenant } from '../service.ts'
import { useOwnService } from '../use.ts'

const perKey = 4
const perAddress = 6
const perMinute = (requests: number) => ({ requests, windowSeconds: 60 })
const perHour = (requests: number) => ({ requests, windowSeconds: 3_600 })

const service = useOwnService({
  limits: { ...trustTheTest, RATE_LIMIT_PER_KEY: `${perKey}/min`, RATE_LIMIT_PER_ADDRESS: `${perAddress}/min` },
})

/** Comes from an address of its own. */
const fromElsewhere = () => comingFrom(newAddress())

const getHistory = ({ prompt, key }: Tenant, headers: Record<string, string>) =>
  service.call('GET', `/api/v1/prompts/${prompt}/history`, { key, headers })

async function repeat<T>(times: number, work: () => Promise<T>): Promise<T[]> {
  const results: T[] = []
  for (let count = 0; count < times; count += 1) results.push(await work())
  return results
}

const limitsIn = ({ headers }: { headers: Headers }) => [headers.get('ratelimit-policy'), headers.get('ratelimit')]

test('past the rate of the key the answer is 429 with all that a caller needs to wait, until one more may pass', async () => {
  service.clock.set('2026-11-15T12:00:20.250Z')
  const tenant = await service.createTenant()
  const first = await getHistory(tenant, fromElsewhere())
  expect([first.status, ...limitsIn(first)]).toEqual([200, '"burst";q=4;w=60', '"burst";r=3;t=15'])
  const others = await repeat(perKey - 1, () => getHistory(tenant, fromElsewhere()))
  expect(others.map(({ status }) => status)).toEqual([200, 200, 200])
  const limited = await service.call('POST', `/api/v1/prompts/${tenant.prompt}/signals`, {
    key: tenant.key,
    headers: fromElsewhere(),
    json: { value: 'positive' },
  })
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
  // Another key of the same organisation has a rate of its own.
  const { key } = await createKey(service.services.db, service.clock, { org: tenant.org, name: 'b', expiresAt: null })
  expect((await getHistory({ ...tenant, key }, fromElsewhere())).status).toBe(200)
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

/** A limiter of 60 requests a minute, and how many of so many pass at a time. */
function createOneASecond() {
  let now = new Date()
  const limiter = createRateLimiter(perMinute(60), { clock: { now: () => now }, name: 'x' })
  return (at: string, times: number) => {
    now = new Date(at)
    return Array.from({ length: times }, () => limiter.take('one')).filter(({ isExceeded }) => !isExceeded).length
  }
}

test('no more than the rate passes at once at any time, also where a minute begins', () => {
  const passedAt = createOneASecond()
  expect(passedAt('2026-11-15T12:00:59.000Z', 200)).toBe(60)
  expect(passedAt('2026-11-15T12:01:00.000Z', 200)).toBe(1)
  expect(passedAt('2026-11-15T12:01:30.999Z', 200)).toBe(30)
  expect(passedAt('2026-11-15T12:01:31.000Z', 200)).toBe(1)
  expect(passedAt('2026-11-15T13:00:00.000Z', 200)).toBe(60)
})

test('a caller who keeps to the rate is never limited, and a clock that is set back makes nobody wait longer', () => {
  const passedAt = createOneASecond()
  for (let second = 10; second < 60; second += 1) expect(passedAt(`2026-11-15T12:00:${second}.000Z`, 1)).toBe(1)
  expect(passedAt('2026-11-15T12:00:59.000Z', 200)).toBe(59)
  expect(passedAt('2026-11-15T09:00:00.000Z', 1)).toBe(0)
  expect(passedAt('2026-11-15T09:00:05.000Z', 200)).toBe(5)
})

test('past the rate of an address nothing is looked at, not even the key, and other addresses go on', async () => {
  service.clock.set('2026-11-15T13:00:00.000Z')
  const tenant = await service.createTenant()
  const address = fromElsewhere()
  const path = `/api/v1/prompts/${tenant.prompt}/history`
  const without = await repeat(perAddress, () => service.call('GET', path, { headers: address }))
  expect(without.map(({ status }) => status)).toEqual(new Array(perAddress).fill(401))
  expect(limitsIn(without[0] as never)).toEqual(['"burst";q=6;w=60', '"burst";r=5;t=10'])
  for (const key of [tenant.key, 'psk_wrong']) {
    const { status, headers, body } = await service.call('GET', path, { key, headers: address })
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
  expect((await getHistory(tenant, fromElsewhere())).status).toBe(200)
})

test('IPv6 addresses of one network are counted together', async () => {
  service.clock.set('2026-11-15T13:10:00.000Z')
  const ask = async (address: string) =>
    (await service.call('GET', '/api/v1/keys', { headers: comingFrom(address) })).status
  const statuses: number[] = []
  for (let host = 1; host <= perAddress + 1; host += 1) statuses.push(await ask(`2001:db8:7:7::${host}`))
  expect(statuses).toEqual([...new Array(perAddress).fill(401), 429])
  expect(await ask('2001:db8:7:8::1')).toBe(401)
})

test('routes that do not exist are counted too, and so is what the framework routes', async () => {
  service.clock.set('2026-11-15T13:20:00.000Z')
  const address = fromElsewhere()
  const ask = async (method: string, path: string) =>
    (await fetch(service.url + path, { method, headers: address })).status
  const statuses = [
    await ask('GET', '/api/v1/nothing'),
    await ask('HEAD', '/api/v1/keys/'),
    await ask('PUT', '/api/v1'),
  ]
  expect(statuses).toEqual([401, 401, 401])
  await repeat(perAddress - 3, () => ask('GET', '/api/v1/keys'))
  expect([await ask('HEAD', '/api/v1/keys/'), await ask('GET', '/api/v1/nothing')]).toEqual([429, 429])
})

test('health, metrics, documentation, preflights and deliveries are never limited', async () => {
  service.clock.set('2026-11-15T13:30:00.000Z')
  const address = fromElsewhere()
  const ask = async (method: string, path: string) => (await service.call(method, path, { headers: address })).status
  await repeat(perAddress, () => ask('GET', '/api/v1/keys'))
  expect(await ask('GET', '/api/v1/keys')).toBe(429)
  const paths = ['/livez', '/readyz', '/metrics', '/docs', '/docs/json', '/nothing']
  const statuses = await Promise.all(paths.map((path) => ask('GET', path)))
  expect(statuses).not.toContain(429)
  const others = [await ask('OPTIONS', '/api/v1/prompts/pmt_x/signals'), await ask('POST', '/webhooks/github/org_none')]
  expect(others).toEqual([204, 401])
})

test('a missing scope is answered before the rate of the key, and does not count towards it', async () => {
  service.clock.set('2026-11-15T13:40:00.000Z')
  const tenant = await service.createTenant()
  const given = { org: tenant.org, name: 'reader', scopes: ['usage:read' as const], expiresAt: null }
  const { key } = await createKey(service.services.db, service.clock, given)
  const answers = await repeat(perKey + 1, () => getHistory({ ...tenant, key }, fromElsewhere()))
  expect(answers.map(({ status }) => status)).toEqual(new Array(perKey + 1).fill(403))
})

test('the month and the rate stand side by side in the headers, and a full month is answered as such', async () => {
  service.clock.set('2026-11-30T23:59:00.000Z')
  const tenant = await service.createTenant(1)
  const post = () =>
    service.call('POST', `/api/v1/prompts/${tenant.prompt}/signals`, {
      ...{ key: tenant.key, headers: fromElsewhere(), json: { value: 'positive' } },
    })
  const [recorded, limited] = [await post(), await post()]
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

test('limited requests are counted by the limit that they exceed', async () => {
  service.clock.set('2026-11-15T13:45:00.000Z')
  const read = async () => {
    const { text } = await service.call('GET', '/metrics')
    const values = [...text.matchAll(/^prompt_signals_requests_limited_total\{limited_by="(\w+)"\} (\d+)$/gm)]
    return Object.fromEntries(values.map(([, by, value]) => [by, Number(value)])) as Record<string, number>
  }
  const before = await read()
  const tenant = await service.createTenant()
  await repeat(perKey + 2, () => getHistory(tenant, fromElsewhere()))
  const address = fromElsewhere()
  await repeat(perAddress + 1, () => service.call('GET', '/api/v1/keys', { headers: address }))
  const after = await read()
  expect(after).toEqual({
    key_rate: (before.key_rate as number) + 2,
    address_rate: (before.address_rate as number) + 1,
  })
})

test('replicas with one Redis share the rate of a key', async () => {
  service.clock.set('2026-11-15T13:50:00.000Z')
  const tenant = await service.createTenant()
  const { db, clock } = service.services
  const other = createServices(
    { db, redis: service.redis, clock, log: createLog('silent') },
    { RATE_LIMIT_PER_KEY: perMinute(perKey) },
  )
  const app = createApp(other)
  const headers = { authorization: `Bearer ${tenant.key}` }
  const path = `/api/v1/prompts/${tenant.prompt}/history`
  let passed = 0
  const count = (status: number) => {
    if (status === 200) passed += 1
    return status
  }
  const askOther = async () => count((await app.fetch(new Request(`http://localhost${path}`, { headers }))).status)
  const ask = async () => count((await getHistory(tenant, fromElsewhere())).status)
  const { id } = await other.verifyKey(`Bearer ${tenant.key}`)
  const bucket = `rate:key:{${id}}`
  for (const [added, send] of [ask, askOther, askOther, ask].entries()) {
    expect(await send()).toBe(200)
    // A request takes fifteen seconds to leak, and the bucket is kept until it is empty.
    await eventually(async () => Math.ceil((await service.testRedis.pttl(bucket)) / 15_000), added + 1)
  }
  await eventually(ask, 429)
  await eventually(askOther, 429)
  // Each learns of the other's requests with its own, so that some more than the rate may have passed.
  expect(passed).toBeGreaterThanOrEqual(perKey)
  expect(passed).toBeLessThan(2 * perKey - 1)
  expect(await service.testRedis.ttl(bucket)).toBeWithin(1, 61)
})

test('what is no bucket, or one that is fuller than full, is put right in Redis', async () => {
  const limiter = createRateLimiter(perHour(4), { clock: service.clock, name: 'odd', redis: service.redis })
  const far = String((Date.now() + 86_400_000) * 1_000)
  await service.testRedis.mset('rate:odd:{word}', 'word', 'rate:odd:{far}', far)
  await service.testRedis.lpush('rate:odd:{list}', 'a', 'b')
  for (const subject of ['word', 'list', 'far']) limiter.take(subject)
  const quarters = async (subject: string) =>
    Math.ceil((await service.testRedis.pttl(`rate:odd:{${subject}}`)) / 900_000)
  await eventually(() => Promise.all(['word', 'list', 'far'].map(quarters)), [1, 1, 4])
})

test('requests that have leaked before they were shared are not added to Redis', async () => {
  const added: number[] = []
  const redis = {
    run: async (_script: string, _key: string, addedUs = 0) => added.push(addedUs),
    set: async () => {},
    status: 'ready',
    disconnect: async () => {},
  }
  let now = Date.parse('2026-11-15T14:00:00.000Z')
  const limiter = createRateLimiter(perMinute(60), { clock: { now: () => new Date(now) }, name: 'x', redis })
  for (let second = 0; second < 100; second += 1) {
    now += 1_000
    limiter.take('one')
  }
  expect(added).toEqual([])
  for (let count = 0; count < 9; count += 1) limiter.take('one')
  await eventually(() => added, [10_000_000])
})
