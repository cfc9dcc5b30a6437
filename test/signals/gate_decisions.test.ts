import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Redis } from '../../src/db/redis.ts'
import { monthOf } from '../../src/lib/months.ts'
import { createAdmission } from '../../src/signals/admit.ts'
import { createGate, type GateDecision } from '../../src/signals/gate.ts'
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
    async takeSignals() {
      const next = taken.shift() as number | null | Error
      if (next instanceof Error) throw next
      return next
    },
    async set() {},
  } as unknown as Redis
  const admission = createAdmission(service.services.db, createGate(redis, observe), observe)
  const month = monthOf(service.clock.now())
  while (taken.length > 0) await admission.admit(row?.id as number, month)
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
    async takeSignals() {
      times += 1
      return null
    },
    async set() {},
  } as unknown as Redis
  const admission = createAdmission(db, createGate(redis))
  const month = monthOf(service.clock.now())
  const full = { full: expect.objectContaining({ used: 0, limit: 0 }) }
  admission.forgetRefusals()
  for (let asked = 0; asked < 3; asked += 1) expect(await admission.admit(id, month)).toEqual(full)
  expect(times).toBe(1)
  admission.forgetRefusals(id)
  expect(await admission.admit(id, month)).toEqual(full)
  expect(times).toBe(2)
})
