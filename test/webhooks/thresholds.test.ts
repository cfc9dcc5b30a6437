import { expect, test } from 'bun:test'
import type { Sql } from '../../src/db/client.ts'
import { setPlan } from '../../src/orgs/manage.ts'
import { announceThresholds } from '../../src/webhooks/announce.ts'
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
  let isFirst = true
  const sql = Object.assign((text: TemplateStringsArray, ...values: unknown[]) => {
    if (!isFirst || !text.join('?').includes('insert into webhook_events')) return db.sql(text, ...values)
    isFirst = false
    return Promise.reject(new Error('no event'))
  }, db.sql) as Sql
  const announced = () => db.sql`select from webhook_events where dedup_key like 'usage.threshold 2031-05 %'`
  expect(await rejectionOf(announceThresholds({ ...db, sql }, clock))).toBe('no event')
  expect(await announced()).toHaveLength(5)
  await announceThresholds(db, clock)
  expect(await announced()).toHaveLength(6)
})

test('an organisation is told of each threshold once a month, on any number of replicas', async () => {
  const { db } = service.services
  service.clock.set('2026-11-15T12:00:00Z')
  const { org, prompt, key } = await service.createTenant(10)
  await insertEndpoints(db, org)
  /** The events since the last call. */
  const announce = async (seen = 0) => {
    await Promise.all([announceThresholds(db, service.clock), announceThresholds(db, service.clock)])
    const rows = await db.sql<{ data: unknown }>`
      select v.data from webhook_events v join organisations o on o.id = v.organisation_id
      where o.public_id = ${org} order by v.id`
    return rows.slice(seen).map(({ data }) => data)
  }
  const send = async (signals: number, seen: number) => {
    for (let number = 0; number < signals; number += 1) await service.postSignal(prompt, key)
    return announce(seen)
  }
  const limit = (monthlyLimit: number) => setPlan(db, service.clock, org, 'free', monthlyLimit)
  const common = { organisation: { id: org, name: 'Test' }, month: '2026-11' }
  expect(await send(7, 0)).toEqual([])
  expect(await send(1, 0)).toEqual([{ ...common, threshold: 80, used: 8, limit: 10 }])
  await limit(20)
  expect(await send(9, 1)).toEqual([])
  expect(await send(5, 1)).toEqual([{ ...common, threshold: 100, used: 20, limit: 20 }])
  await limit(0)
  service.clock.set('2026-12-01T00:00:00Z')
  expect(await announce(2)).toEqual([])
  await limit(1)
  const december = { ...common, month: '2026-12', used: 1, limit: 1 }
  expect(await send(1, 2)).toEqual([80, 100].map((threshold) => ({ ...december, threshold })))
  // A limit that is lowered below what was used is reached then.
  service.clock.set('2027-01-01T00:00:00Z')
  await limit(10)
  expect(await send(6, 4)).toEqual([])
  const january = { ...common, month: '2027-01', used: 6 }
  for (const [monthlyLimit, seen, threshold] of [
    [7, 4, 80],
    [6, 5, 100],
    [5, 6, null],
    [100, 6, null],
  ] as const) {
    await limit(monthlyLimit)
    expect(await announce(seen)).toEqual(threshold ? [{ ...january, threshold, limit: monthlyLimit }] : [])
  }
})

test('what was used in the last seconds of a month is told after its end', async () => {
  const { db } = service.services
  const { org } = await service.createTenant(1)
  await insertEndpoints(db, org)
  await db.sql`
    insert into signal_usage (organisation_id, month, used)
    select o.id, '2032-01-01', 1 from organisations o where o.public_id = ${org}`
  const announce = async (time: string) => {
    await announceThresholds(db, { now: () => new Date(time) })
    return (await db.sql`select from webhook_events where dedup_key like 'usage.threshold 2032-01 %'`).length
  }
  expect(await announce('2032-02-01T00:10:00Z')).toBe(0)
  expect(await announce('2032-02-01T00:00:10Z')).toBe(2)
  expect(await announce('2032-02-01T00:00:25Z')).toBe(2)
})
