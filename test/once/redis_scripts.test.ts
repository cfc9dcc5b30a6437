import { expect, test } from 'bun:test'
import { openRedis } from '../../src/db/redis.ts'
import { patientRedis, redisPrefix } from '../harness.ts'
import { eventually } from '../program.ts'
import { startRedis, withRedis } from '../services.ts'

test('scripts that the server does not know, or no longer, run together with others', async () => {
  const server = await startRedis()
  const redis = openRedis(server.url, redisPrefix(), patientRedis)
  await eventually(() => redis.status, 'ready')
  const keys = ['a', 'b', 'c']
  const expiresAt = Math.ceil(Date.now() / 1_000) + 60
  for (const key of keys) await redis.setCounter(key, 1, expiresAt)
  const raiseAll = () => Promise.all(keys.map((key) => redis.raiseCounter(key, 2, expiresAt)))
  expect([await raiseAll(), await raiseAll()]).toEqual([
    [3, 3, 3],
    [5, 5, 5],
  ])
  await withRedis(server.url, (on) => on.script('FLUSH'))
  expect(await raiseAll()).toEqual([7, 7, 7])
  expect(redis.error).toBeUndefined()
  await redis.disconnect()
  await server.stop()
})
