// Replicas that share the deliveries of one database.
import { beforeEach, expect, onTestFinished, test } from 'bun:test'
import { pruneEvents } from '../../src/webhooks/events.ts'
import { leaseDeliveries, selectBacklog } from '../../src/webhooks/store_events.ts'
import { eventually } from '../program.ts'
import { useOpenDatabase } from '../use.ts'
import { addEndpoints, emitOn, startDeliverer } from './emit.ts'

const db = useOpenDatabase()

beforeEach(() => db.sql`update webhook_endpoints set disabled_at = now(), disabled_reason = 'requested'`)

function start(answer: (url: string) => Promise<number>) {
  const replica = startDeliverer(db, answer)
  onTestFinished(async () => {
    await replica.stop()
    expect(replica.failures).toEqual([])
  })
  return replica
}

const never = () => new Promise<never>(() => {})

const statesOf = async (event: string) => {
  const rows = await db.sql<{ status: string; attempts: number }>`
    select d.status, d.attempts from webhook_deliveries d join webhook_events v on v.id = d.event_id
    where v.public_id = ${event}`
  return rows.map(({ status, attempts }) => [status, attempts])
}

test('an event is sent to each endpoint once by several replicas, and again after a replica was lost', async () => {
  const org = await addEndpoints(db, 20, 'any')
  const replicas = [start(async () => 204), start(async () => 204)]
  const sent = () => replicas.flatMap(({ sent }) => sent.map(({ id }) => id))
  const events = [await emitOn(db, org), await emitOn(db, org), await emitOn(db, org)]
  for (const event of events) await eventually(() => statesOf(event), Array(20).fill(['delivered', 1]))
  expect(sent().sort()).toEqual(events.flatMap((event) => Array(20).fill(event)).sort())
  // As a replica does that is killed during an attempt.
  await db.sql`
    update webhook_deliveries set status = 'pending', attempts = 0, next_attempt_at = now() + interval '1 second'
    where event_id = (select id from webhook_events where public_id = ${events[0] as string})`
  await eventually(() => statesOf(events[0] as string), Array(20).fill(['delivered', 1]))
  expect(sent()).toHaveLength(80)
})

test('a delivery is leased by one of many replicas that ask at the same time', async () => {
  const org = await addEndpoints(db, 40, 'any')
  const request = { isFailing: false, busyEndpoints: [], limit: 100, leaseMs: 60_000 }
  for (let round = 0; round < 5; round += 1) {
    await emitOn(db, org)
    const leases = await Promise.all(Array.from({ length: 4 }, () => leaseDeliveries(db.sql, request)))
    expect(leases.flat()).toHaveLength(40)
  }
})

test('an answer that comes after the lease has ended changes nothing', async () => {
  const org = await addEndpoints(db, 1, 'any')
  const late = Promise.withResolvers<number>()
  const first = start(() => late.promise)
  const event = await emitOn(db, org)
  await eventually(() => first.sent.length, 1)
  const second = start(async () => 204)
  await db.sql`update webhook_deliveries set next_attempt_at = now() where status = 'pending'`
  await eventually(() => statesOf(event), [['delivered', 1]])
  late.resolve(503)
  await first.stop()
  expect([second.sent.length, await statesOf(event)]).toEqual([1, [['delivered', 1]]])
  expect(await db.sql`select from webhook_endpoints where failing_since_at is not null`).toEqual([])
})

test('endpoints that hang leave places for others, and those that fail have their own', async () => {
  for (let number = 0; number < 6; number += 1) await emitOn(db, await addEndpoints(db, 20, 'slow'))
  const { sent } = start((url) => (url === 'slow' ? never() : Promise.resolve(204)))
  await eventually(() => sent.length, 120)
  await emitOn(db, await addEndpoints(db, 1, 'fast'))
  await eventually(() => sent.at(-1)?.url, 'fast')
  const org = await addEndpoints(db, 60, 'slow')
  await db.sql`
    update webhook_endpoints set failing_since_at = now()
    where organisation_id = (select id from organisations where public_id = ${org})`
  await emitOn(db, org)
  await eventually(() => sent.length, 171)
  await emitOn(db, await addEndpoints(db, 1, 'fast'))
  await eventually(() => sent.at(-1)?.url, 'fast')
  expect(sent).toHaveLength(172)
})

test('who was sent to longest ago comes first, however many others wait', async () => {
  await emitOn(db, await addEndpoints(db, 160, 'busy'))
  await db.sql`update webhook_endpoints set last_sent_at = now() - interval '1 hour'`
  const answers: (() => void)[] = []
  const { sent } = start(() => new Promise((resolve) => answers.push(() => resolve(204))))
  await eventually(() => sent.length, 150)
  await emitOn(db, await addEndpoints(db, 1, 'new'))
  answers[0]?.()
  await eventually(() => sent.slice(150).map(({ url }) => url), ['new'])
})

test('the backlog is as old as the oldest event that an enabled endpoint waits for', async () => {
  expect(await selectBacklog(db.sql)).toMatchObject({ oldest: null })
  const org = await addEndpoints(db, 2, 'any')
  const oldest = new Date('2026-11-10T12:00:00Z')
  await db.sql`
    update webhook_events set created_at = ${oldest} where public_id = ${await emitOn(db, org)}`
  await emitOn(db, org)
  expect(await selectBacklog(db.sql)).toMatchObject({ oldest })
})

test('after a failure an endpoint is sent nothing for a second, however many events are due', async () => {
  const times: number[] = []
  const { sent } = start(async () => {
    times.push(performance.now())
    return 503
  })
  const org = await addEndpoints(db, 1, 'any')
  for (let number = 0; number < 5; number += 1) await emitOn(db, org)
  await eventually(() => sent.length >= 3, true)
  const pauses = times.slice(1).map((time, index) => time - (times[index] as number))
  expect(Math.min(...pauses)).toBeGreaterThanOrEqual(990)
})

test('of the events that are due for an endpoint, the newest are kept, and the others fail', async () => {
  const org = await addEndpoints(db, 2, 'any')
  const events: string[] = []
  for (let number = 0; number < 5; number += 1) events.push(await emitOn(db, org))
  // The first event waits for a retry, and one endpoint has received most of them.
  await db.sql`
    update webhook_deliveries set next_attempt_at = now() + interval '1 hour'
    where event_id = (select id from webhook_events where public_id = ${events[0] as string})`
  await db.sql`
    update webhook_deliveries set status = 'delivered', next_attempt_at = null
    where endpoint_id = (select max(id) from webhook_endpoints)
      and event_id in (select id from webhook_events where public_id = any (${events.slice(0, 3)}::text[]))`
  await pruneEvents(db, new Date(), 2)
  const states = await Promise.all(
    events.map(async (event) => (await statesOf(event)).map(([status]) => status).sort()),
  )
  const failed = ['delivered', 'failed']
  expect(states).toEqual([['delivered', 'pending'], failed, failed, ['pending', 'pending'], ['pending', 'pending']])
})
