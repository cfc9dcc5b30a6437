import { expect, test } from 'bun:test'
import { Redis as Client } from 'ioredis'
import { openRedis, type Redis, scripts } from '../../src/db/redis.ts'
import { createRateLimiter } from '../../src/http/rate_limit.ts'
import { patientRedis, redisPrefix, redisUrl } from '../harness.ts'
import { eventually } from '../program.ts'
import { createProxy } from '../proxy.ts'

const start = Date.parse('2026-11-15T14:00:00.000Z')
const stopped = { now: () => new Date(start) }
const perMinute = (requests: number) => ({ requests, windowSeconds: 60 })
const perHour = (requests: number) => ({ requests, windowSeconds: 3_600 })

test('a rate holds within each process while Redis is away, and is shared again when it is back', async () => {
  const proxy = await createProxy(redisUrl())
  const prefix = redisPrefix()
  const [near, far] = [proxy.url, redisUrl()].map((url) => openRedis(url, prefix, patientRedis)) as [Redis, Redis]
  const limiter = createRateLimiter(perHour(100), { clock: stopped, name: 'x', redis: near })
  const replica = createRateLimiter(perHour(100), { clock: stopped, name: 'x', redis: far })
  const take = (subject: string, times: number) =>
    Array.from({ length: times }, () => limiter.take(subject)).filter(({ isExceeded }) => !isExceeded).length
  /** Whether it counts more than what it was asked itself. */
  const isKnownToReplica = (subject: string) => {
    let taken = 0
    return () => {
      taken += 1
      return replica.take(subject).used === taken + 50
    }
  }

  await eventually(() => [near.status, far.status], ['ready', 'ready'])
  expect(take('before', 50)).toBe(50)
  await eventually(isKnownToReplica('before'), true)
  proxy.setClosing(true)
  proxy.cut('reset')
  await eventually(() => near.error !== undefined, true)
  expect(take('during', 150)).toBe(100)
  proxy.setClosing(false)
  await eventually(() => near.error, undefined)
  expect(take('after', 50)).toBe(50)
  await eventually(isKnownToReplica('after'), true)
  await Promise.all([near.disconnect(), far.disconnect()])
  proxy.close()
})

test('requests of an earlier, slower rate are not counted as many of the new one', async () => {
  const redis = openRedis(redisUrl(), redisPrefix(), patientRedis)
  const create = (rate: Parameters<typeof createRateLimiter>[0]) =>
    createRateLimiter(rate, { clock: stopped, name: 'x', redis })
  await eventually(() => redis.status, 'ready')
  const [before, replica, after] = [create(perHour(100)), create(perHour(100)), create(perMinute(600))]
  for (let taken = 0; taken < 100; taken += 1) before.take('a')
  await eventually(() => replica.take('a').isExceeded, true)
  for (let taken = 0; taken < 60; taken += 1) after.take('a')
  await Bun.sleep(500)
  expect(after.take('a')).toMatchObject({ isExceeded: false, used: 61 })
  await redis.disconnect()
})

test('four replicas together pass the rate of one, to a caller that never slows down', async () => {
  const [requests, seconds, stepMs] = [20, 5, 100]
  const client = new Client(redisUrl(), { keyPrefix: redisPrefix() })
  let now = start
  let shares = 0
  // The script gets the time of the test, which a busy machine cannot stop.
  const fillBucket: Redis['fillBucket'] = async (key, ...values) => {
    const atNow = scripts.fillBucket.replace("redis.call('TIME')", `{ ${now / 1_000}, 0 }`)
    return (client.eval(atNow, 1, key, ...values) as Promise<number>).finally(() => (shares += 1))
  }
  const replicas = Array.from({ length: 4 }, () =>
    createRateLimiter(
      { requests, windowSeconds: 1 },
      { clock: { now: () => new Date(now) }, name: 'x', redis: { fillBucket } as Redis },
    ),
  )
  let passed = 0
  for (const until = now + seconds * 1_000; now < until; now += stepMs) {
    const counts = replicas.map(
      ({ take }) => Array.from({ length: requests }, () => take('one')).filter(({ isExceeded }) => !isExceeded).length,
    )
    passed += counts.reduce((sum, count) => sum + count)
    const sharing = shares + counts.filter((count) => count > 0).length
    await eventually(() => shares, sharing)
  }
  const right = requests + requests * seconds
  expect(passed).toBeGreaterThan(0.9 * right)
  expect(passed).toBeLessThan(1.1 * right)
  client.disconnect()
})

/** A Redis that keeps the microseconds it was asked to add. */
function fakeRedis(isAvailable: boolean) {
  const added: number[] = []
  const fillBucket: Redis['fillBucket'] = async (_key, addedUs) => {
    added.push(addedUs)
    return isAvailable ? addedUs : undefined
  }
  return { added, redis: { fillBucket } as Redis }
}

test('requests that Redis did not confirm in time are not added to it twice', async () => {
  const { redis, added } = fakeRedis(false)
  const limiter = createRateLimiter(perMinute(10), { clock: stopped, name: 'x', redis })
  limiter.take('one')
  await eventually(() => added, [6_000_000])
  limiter.take('one')
  await eventually(() => added, [6_000_000, 6_000_000])
})

test('requests that have leaked before they were shared are not added to Redis', async () => {
  const { redis, added } = fakeRedis(true)
  let now = start
  const limiter = createRateLimiter(perMinute(60), { clock: { now: () => new Date(now) }, name: 'x', redis })
  for (let second = 0; second < 100; second += 1) {
    now += 1_000
    limiter.take('one')
  }
  expect(added).toEqual([])
  for (let count = 0; count < 9; count += 1) limiter.take('one')
  await eventually(() => added, [10_000_000])
})

test('a flood of addresses uses bounded memory, and locks nobody out', () => {
  const limiter = createRateLimiter(perMinute(1), { clock: stopped, name: 'address' })
  expect([limiter.take('first').isExceeded, limiter.take('first').isExceeded]).toEqual([false, true])
  for (let address = 0; address < 50_000; address += 1) expect(limiter.take(address).isExceeded).toBe(false)
  // The first was forgotten for the others.
  expect(limiter.take('first').isExceeded).toBe(false)
  expect(limiter.take(49_999).isExceeded).toBe(true)
})
