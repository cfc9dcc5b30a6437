import { expect, test } from 'bun:test'
import { monthOf } from '../../src/lib/months.ts'
import { eventually } from '../program.ts'
import { countOf, organisationIdOf } from '../signals/fixtures.ts'
import { useService } from '../use.ts'

const service = useService()

/** A tenant that has recorded some signals, and its counter in Redis. */
async function createGated(monthlyLimit: number, used: number) {
  const tenant = await service.createTenant(monthlyLimit)
  const post = async () => (await service.postSignal(tenant.prompt, tenant.key)).status
  for (let n = 0; n < used; n += 1) expect(await post()).toBe(201)
  const key = `signals:{${await organisationIdOf(service, tenant)}}:${monthOf(service.clock.now()).name}`
  const count = () => service.testRedis.get(key)
  return { tenant, post, key, count }
}

test('near the limit Redis has the count of Postgres until the month ends, else nothing', async () => {
  const near = await createGated(10, 9)
  await eventually(near.count, '9')
  const { resetsAtSeconds } = monthOf(service.clock.now())
  expect(await service.testRedis.call('EXPIRETIME', near.key)).toBe(resetsAtSeconds)
  await service.testRedis.persist(near.key)
  expect(await near.post()).toBe(201)
  expect(await service.testRedis.call('EXPIRETIME', near.key)).toBe(resetsAtSeconds)
  const far = await createGated(100, 3)
  expect(await far.count()).toBeNull()
})

test.each<[string, (key: string) => Promise<unknown>]>([
  ['is missing', (key) => service.testRedis.del(key)],
  ['is too low', (key) => service.testRedis.set(key, 0)],
  ['is too high', (key) => service.testRedis.set(key, 100)],
  ['is a list', (key) => service.testRedis.del(key).then(() => service.testRedis.lpush(key, 'x'))],
  ['is a word', (key) => service.testRedis.set(key, 'many')],
  ['is the largest number', (key) => service.testRedis.set(key, '9223372036854775807')],
])('a count that %s is corrected: the last unit can be used, and no more', async (_, spoil) => {
  const { tenant, post, key, count } = await createGated(10, 9)
  await eventually(count, '9')
  await spoil(key)
  expect([await post(), await post()]).toEqual([201, 429])
  await eventually(count, '10')
  expect(await countOf(service, tenant)).toEqual({ rows: 10, used: 10 })
  expect(service.redis.error).toBeUndefined()
})

test('a count over the limit of a full month is confirmed by Postgres, without a write', async () => {
  const { tenant, post, count } = await createGated(10, 10)
  const metrics = () => service.services.metrics.text()
  const writes = async () => /batch_wait_seconds_count (\d+)/.exec(await metrics())?.[1]
  const before = await writes()
  // The refusal that the last write left has ended when the gate counts again.
  await eventually(async () => [await post(), Number(await count()) > 10], [429, true])
  expect(await writes()).toBe(before as string)
  expect(await countOf(service, tenant)).toEqual({ rows: 10, used: 10 })
})
