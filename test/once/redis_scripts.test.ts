import { expect, test } from 'bun:test'
import { openRedis } from '../../src/db/redis.ts'
import { patientRedis, redisPrefix, redisUrl } from '../harness.ts'
import { eventually, rejectionOf } from '../program.ts'

const prefix = redisPrefix()

/** A script that no other run has left in the server. */
const add = (number: number) => `return redis.call('INCRBY', KEYS[1], ARGV[1] + ${number}) -- ${prefix}`

test('scripts that the server does not know yet run together, and again; what fails in one is an error', async () => {
  const redis = openRedis(redisUrl(), prefix, patientRedis)
  await eventually(() => redis.status, 'ready')
  const addAll = () => Promise.all([1, 2, 3].map((number) => redis.run(add(number), `key ${number}`, 10)))
  expect([await addAll(), await addAll()]).toEqual([
    [11, 12, 13],
    [22, 24, 26],
  ])
  const failing = `return redis.call('NONE') -- ${prefix}`
  expect(await rejectionOf(redis.run(failing, 'again'))).toContain('Unknown Redis command')
  await redis.disconnect()
})
