import { expect, onTestFinished, test } from 'bun:test'
import type { Db } from '../../src/db/client.ts'
import { createServices } from '../../src/deps.ts'
import { createLog } from '../../src/log.ts'
import { setPlan } from '../../src/orgs/manage.ts'
import { createClient } from '../client.ts'
import { eventually } from '../program.ts'
import { serve } from '../service.ts'
import { countOf } from '../signals/fixtures.ts'
import { useService } from '../use.ts'

const service = useService()
const withRedis = [
  ['with Redis', true],
  ['without Redis', false],
] as const

/** A replica with or without Redis, and the number of its writes of signals and reads of usages. */
async function startCounted(hasRedis: boolean) {
  let statements = 0
  const count = (sql: Db['sql']) =>
    new Proxy(sql, {
      apply(target, self, given) {
        if (/write_signals|usages_of/.test(given[0].join())) statements += 1
        return Reflect.apply(target, self, given)
      },
    })
  const { db } = service.services
  const counted: Db = {
    ...db,
    sql: count(db.sql),
    transaction: (work, ...rest) => db.transaction((sql) => work(count(sql)), ...rest),
  }
  const { clock, redis } = service
  const replica = createServices({ db: counted, redis: hasRedis ? redis : undefined, clock, log: createLog('silent') })
  const listener = serve(replica)
  onTestFinished(() => listener.stop())
  return { ...(await createClient(listener.url)), statements: () => statements }
}

test.each(withRedis)('a flood of refused signals costs Postgres a few statements a second, %s', async (_, hasRedis) => {
  const tenant = await service.createTenant(1)
  const replica = await startCounted(hasRedis)
  const batch = () =>
    replica.post(`/prompts/${tenant.prompt}/signals/batch`, tenant.key, { signals: [{ value: 'positive' }] })
  const single = () => replica.postSignal(tenant.prompt, tenant.key)
  expect((await single()).status).toBe(201)
  const [seconds, beganAt] = [2, performance.now()]
  const statuses = new Set<number>()
  const flood = async (_: unknown, caller: number) => {
    while (performance.now() - beganAt < seconds * 1_000) {
      const { status, body } = await (caller % 4 === 0 ? batch() : single())
      statuses.add(body.data?.[0].status ?? status)
    }
  }
  await Promise.all(Array.from({ length: 16 }, flood))
  expect([...statuses]).toEqual([429])
  expect(replica.statements()).toBeLessThanOrEqual(4 * seconds)
  expect(await countOf(service, tenant)).toEqual({ rows: 1, used: 1 })
})

test.each(withRedis)('a raised limit holds within a second, to its last unit, %s', async (_, hasRedis) => {
  const tenant = await service.createTenant(1)
  const replica = await startCounted(hasRedis)
  const post = async () => (await replica.postSignal(tenant.prompt, tenant.key)).status
  expect([await post(), await post()]).toEqual([201, 429])
  await setPlan(service.services.db, service.clock, tenant.org, 'free', 3)
  await eventually(post, 201, 1_000)
  expect([await post(), await post(), await post()]).toEqual([201, 429, 429])
  expect(await countOf(service, tenant)).toEqual({ rows: 3, used: 3 })
})
