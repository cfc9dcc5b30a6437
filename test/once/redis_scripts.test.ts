import { afterAll, expect, test } from 'bun:test'
import { Redis } from 'ioredis'
import { openRedis } from '../../src/db/redis.ts'
import { patientRedis, redisPrefix, redisUrl } from '../harness.ts'
import { eventually, rejectionOf } from '../program.ts'

const prefix = redisPrefix()
const redis = openRedis(redisUrl(), prefix, patientRedis)
const testRedis = new Redis(redisUrl())

afterAll(async () => {
  await redis.disconnect()
  testRedis.disconnect()
})

/** A script that no other run has left in the server. */
const add = (number: number) => `return redis.call('INCRBY', KEYS[1], ARGV[1] + ${number}) -- ${prefix}`

test('scripts that are run for the first time together do not end the process', async () => {
  await eventually(() => redis.status, 'ready')
  const sums = await Promise.all([1, 2, 3].map((number) => redis.run(add(number), `key ${number}`, 10)))
  expect(sums).toEqual([11, 12, 13])
  expect(await testRedis.get(`${prefix}key 3`)).toBe('13')
})

test('a script runs again without its text, and what fails in it is an error', async () => {
  await eventually(() => redis.status, 'ready')
  expect([await redis.run(add(4), 'again', 1), await redis.run(add(4), 'again', 1)]).toEqual([5, 10])
  const failing = `return redis.call('NONE') -- ${prefix}`
  expect(await rejectionOf(redis.run(failing, 'again'))).toContain('Unknown Redis command')
})
