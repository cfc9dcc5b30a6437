import { expect, test } from 'bun:test'
import { setPlan } from '../../src/orgs/manage.ts'
import { tellThresholds } from '../../src/webhooks/thresholds.ts'
import { rejectionOf } from '../program.ts'
import { useService } from '../use.ts'
import { insertEndpoints } from './emit.ts'

const service = useService()

test('an organisation that cannot be told does not keep the others from it', async () => {
  const { db } = service.services
  // The service itself looks at another month.
  const clock = { now: () => new Date('2031-05-15T12:00:00Z') }
  for (let number = 0; number < 3; number += 1) {
    const { org } = await service.createTenant(1)
    await insertEndpoints(db, org)
    await db.sql`
      insert into signal_usage (organisation_id, month, used)
      select o.id, '2031-05-01', 1 from organisations o where o.public_id = ${org}`
  }
  let failing: unknown
  const transaction: typeof db.transaction = (work, request, isolation) => {
    // The first one, whichever it is.
    failing ??= request?.tenant
    return request?.tenant === failing
      ? Promise.reject(new Error('no transaction'))
      : db.transaction(work, request, isolation)
  }
  expect(await rejectionOf(tellThresholds({ ...db, transaction }, clock))).toBe('no transaction')
  const told = () => db.sql`select distinct organisation_id from told_thresholds where month = '2031-05-01'`
  expect(await told()).toHaveLength(2)
  await tellThresholds(db, clock)
  expect(await told()).toHaveLength(3)
})

test('an organisation is told of each threshold once a month, on any number of replicas', async () => {
  const { db } = service.services
  service.clock.set('2026-11-15T12:00:00Z')
  const { org, prompt, key } = await service.createTenant(10)
  await insertEndpoints(db, org)
  const told: unknown[] = []
  const look = async () => {
    await Promise.all([tellThresholds(db, service.clock), tellThresholds(db, service.clock)])
    // Events are pruned while the month goes on.
    const rows = await db.sql<{ data: unknown }>`
      with gone as (
        delete from webhook_events v using organisations o
        where o.id = v.organisation_id and o.public_id = ${org}
        returning v.id, v.data
      )
      select data from gone order by id`
    told.push(...rows.map(({ data }) => data))
  }
  const send = async (signals: number) => {
    for (let number = 0; number < signals; number += 1) await service.postSignal(prompt, key)
    await look()
  }
  const limit = (monthlyLimit: number) => setPlan(db, service.clock, org, 'free', monthlyLimit)
  const common = { organisation: { id: org, name: 'Test' }, month: '2026-11' }
  await send(7)
  expect(told.splice(0)).toEqual([])
  await send(1)
  expect(told.splice(0)).toEqual([{ ...common, threshold: 80, used: 8, limit: 10 }])
  await limit(20)
  await send(9)
  expect(told.splice(0)).toEqual([])
  await send(5)
  expect(told.splice(0)).toEqual([{ ...common, threshold: 100, used: 20, limit: 20 }])
  await limit(0)
  service.clock.set('2026-12-01T00:00:00Z')
  await look()
  expect(told.splice(0)).toEqual([])
  await limit(1)
  await send(1)
  expect(told.splice(0).map((one) => (one as { threshold: number }).threshold)).toEqual([80, 100])
  // A limit that is lowered below what was used is reached then.
  service.clock.set('2027-01-01T00:00:00Z')
  await limit(10)
  await send(6)
  expect(told).toEqual([])
  const january = { ...common, month: '2027-01', used: 6 }
  for (const [monthlyLimit, threshold] of [
    [7, 80],
    [6, 100],
    [5, null],
    [100, null],
  ] as const) {
    await limit(monthlyLimit)
    await look()
    expect(told.splice(0)).toEqual(threshold ? [{ ...january, threshold, limit: monthlyLimit }] : [])
  }
})
