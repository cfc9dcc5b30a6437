import { expect, test } from 'bun:test'
import type { Redis } from '../../src/db/redis.ts'
import { monthOf } from '../../src/lib/months.ts'
import { createAdmission, type GateDecision } from '../../src/limit/admit.ts'
import { organisationIdOf } from '../signals/fixtures.ts'
import { useService } from '../use.ts'

const service = useService()
const month = () => monthOf(service.clock.now())

async function createOrganisation(monthlyLimit: number, used: number): Promise<number> {
  const tenant = await service.createTenant(monthlyLimit)
  for (let n = 0; n < used; n += 1) await service.postSignal(tenant.prompt, tenant.key)
  return organisationIdOf(service, tenant)
}

/** An admission whose gate gets these answers of Redis, or asks the real one; with its decisions and breaker changes. */
function createObserved(answers?: (number | null | Error)[]) {
  const said: (GateDecision | boolean)[] = []
  const observe = { decided: (one: GateDecision) => said.push(one), breakerChanged: (open: boolean) => said.push(open) }
  const scripted = {
    async run() {
      const next = answers?.shift() as number | null | Error
      if (next instanceof Error) throw next
      return next
    },
    async set() {},
    nodeOf: () => 'one',
  } as unknown as Redis
  return { admission: createAdmission(service.services.db, answers ? scripted : service.redis, observe), said }
}

const away = new Error('away')

test.each([
  ['a missing count is seeded, and counts within the limit pass', 10, [null, 2, 3], ['seeded', 'passed', 'passed']],
  ['a count that is too high is corrected', 10, [null, 11], ['seeded', 'corrected']],
  ['a full month is refused', 1, [null, 2, 3], ['refused', 'refused', 'refused']],
  [
    'without an answer of Redis requests pass, and after two failures Redis is bypassed',
    10,
    [null, away, away],
    ['seeded', 'unreachable', true, 'unreachable'],
  ],
] as [string, number, (number | null | Error)[], (GateDecision | boolean)[]][])(
  '%s',
  async (_, limit, answers, said) => {
    const id = await createOrganisation(limit, Math.max(1, limit - 1))
    const observed = createObserved(answers)
    while (answers.length > 0) await observed.admission.admit(id, month())
    expect(observed.said).toEqual(said)
  },
)

test('a confirmed refusal is repeated without asking Redis, until limits may have changed', async () => {
  const id = await createOrganisation(0, 0)
  const answers = [null, null]
  const { admission } = createObserved(answers)
  const refusal = expect.objectContaining({ used: 0, limit: 0 })
  admission.forgetRefusals()
  for (let call = 0; call < 3; call += 1) expect(await admission.admit(id, month())).toEqual(refusal)
  expect(answers).toHaveLength(1)
  admission.forgetRefusals(id)
  expect(await admission.admit(id, month())).toEqual(refusal)
  expect(answers).toHaveLength(0)
})

test.each([
  ['a list', (key: string) => service.testRedis.lpush(key, 'x')],
  ['a word', (key: string) => service.testRedis.set(key, 'many')],
  ['the largest number', (key: string) => service.testRedis.set(key, '9223372036854775807')],
])('a key that holds %s is repaired, and the breaker stays closed', async (_, poison) => {
  const id = await createOrganisation(2, 2)
  const key = `signals:{${id}}:${month().name}`
  const { admission, said } = createObserved()
  for (let time = 0; time < 3; time += 1) {
    await service.testRedis.del(key)
    await poison(key)
    expect(await admission.admit(id, month())).toEqual({ used: 2, limit: 2 })
    expect(await service.testRedis.get(key)).toBe('3')
  }
  expect(said).toEqual(['refused', 'refused', 'refused'])
})

test('Redis is not asked for an organisation that is far from its limit', async () => {
  const id = await createOrganisation(100, 3)
  expect(await service.testRedis.exists(`signals:{${id}}:${month().name}`)).toBe(0)
})
