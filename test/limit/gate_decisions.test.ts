import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Redis } from '../../src/db/redis.ts'
import { monthOf } from '../../src/lib/months.ts'
import { createAdmission } from '../../src/limit/admit.ts'
import { createGate, type GateDecision } from '../../src/limit/gate.ts'
import { startService, type TestService } from '../service.ts'

let service: TestService

beforeAll(async () => {
  service = await startService()
})

afterAll(() => service.close())

/** What is decided when the gate says that so many were taken, of an organisation that is near its limit or at it. */
async function decide(monthlyLimit: number, ...taken: (number | null | Error)[]): Promise<(GateDecision | boolean)[]> {
  const tenant = await service.createTenant(monthlyLimit)
  for (let used = 0; used < Math.max(1, monthlyLimit - 1); used += 1)
    await service.postSignal(tenant.prompt, tenant.key)
  const [row] = await service.services.db.sql<{ id: number }>`
    select id from organisations where public_id = ${tenant.org}`
  const said: (GateDecision | boolean)[] = []
  const observe = { decided: (one: GateDecision) => said.push(one), breakerChanged: (open: boolean) => said.push(open) }
  const redis = {
    async run() {
      const next = taken.shift() as number | null | Error
      if (next instanceof Error) throw next
      return next
    },
    async set() {},
  } as unknown as Redis
  const admission = createAdmission(service.services.db, createGate(redis, observe), observe)
  const month = monthOf(service.clock.now())
  while (taken.length > 0) await admission.findRefusal(row?.id as number, month)
  return said
}

const away = new Error('away')

test.each([
  [
    'a number that is missing is seeded, and those within the limit pass',
    10,
    [null, 2, 3],
    ['seeded', 'passed', 'passed'],
  ],
  ['a number that is too high is corrected', 10, [null, 11], ['seeded', 'corrected']],
  ['a month that is full is refused', 1, [null, 2, 3], ['refused', 'refused', 'refused']],
  [
    'what Redis did not answer passes unseen, and after two of them Redis is left out',
    10,
    [null, away, away],
    ['seeded', 'unreachable', true, 'unreachable'],
  ],
] as [string, number, (number | null | Error)[], (GateDecision | boolean)[]][])('%s', async (_, limit, taken, said) => {
  expect(await decide(limit, ...taken)).toEqual(said)
})

test('what Postgres has confirmed is refused again without asking Redis, until limits may have changed', async () => {
  const { org } = await service.createTenant(0)
  const { db } = service.services
  const [row] = await db.sql<{ id: number }>`select id from organisations where public_id = ${org}`
  const id = row?.id as number
  let times = 0
  const redis = {
    async run() {
      times += 1
      return null
    },
    async set() {},
  } as unknown as Redis
  const admission = createAdmission(db, createGate(redis))
  const month = monthOf(service.clock.now())
  const full = expect.objectContaining({ used: 0, limit: 0 })
  admission.forgetRefusals()
  for (let call = 0; call < 3; call += 1) expect(await admission.findRefusal(id, month)).toEqual(full)
  expect(times).toBe(1)
  admission.forgetRefusals(id)
  expect(await admission.findRefusal(id, month)).toEqual(full)
  expect(times).toBe(2)
})

test.each([
  ['a list', (key: string) => service.testRedis.lpush(key, 'x')],
  ['a word', (key: string) => service.testRedis.set(key, 'many')],
  ['the largest number', (key: string) => service.testRedis.set(key, '9223372036854775807')],
])('a key that holds %s is repaired, and the breaker stays closed', async (_, poison) => {
  const tenant = await service.createTenant(2)
  for (let used = 0; used < 2; used += 1) await service.postSignal(tenant.prompt, tenant.key)
  const { db } = service.services
  const [row] = await db.sql<{ id: number }>`select id from organisations where public_id = ${tenant.org}`
  const id = row?.id as number
  const month = monthOf(service.clock.now())
  const key = `signals:{${id}}:${month.name}`
  const said: (GateDecision | boolean)[] = []
  const observe = { decided: (one: GateDecision) => said.push(one), breakerChanged: (open: boolean) => said.push(open) }
  const admission = createAdmission(db, createGate(service.redis, observe), observe)
  for (let time = 0; time < 3; time += 1) {
    await service.testRedis.del(key)
    await poison(key)
    expect(await admission.findRefusal(id, month)).toEqual({ used: 2, limit: 2 })
    expect(await service.testRedis.get(key)).toBe('3')
  }
  expect(said).toEqual(['refused', 'refused', 'refused'])
})

test('Redis hears nothing of an organisation that is far from its limit', async () => {
  const tenant = await service.createTenant(100)
  for (let used = 0; used < 3; used += 1) await service.postSignal(tenant.prompt, tenant.key)
  const [row] = await service.services.db.sql<{ id: number }>`
    select id from organisations where public_id = ${tenant.org}`
  const key = `signals:{${row?.id}}:${monthOf(service.clock.now()).name}`
  expect(await service.testRedis.exists(key)).toBe(0)
})
