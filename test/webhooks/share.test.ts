import { expect, test } from 'bun:test'
import { choosePlaces, findExcluded } from '../../src/webhooks/share.ts'
import {
  type Claim,
  claimDeliveries,
  recordAttempt,
  releaseEndpoint,
  selectDue,
} from '../../src/webhooks/store_deliveries.ts'
import { eventually } from '../program.ts'
import { useOpenDatabase } from '../use.ts'
import { addEndpoints, emitOn, startDeliverer } from './deliverer.ts'

const db = useOpenDatabase()

test('who is excluded is not offered, and an answer is recorded only by the replica that holds the claim', async () => {
  await emitOn(db, await addEndpoints(db, 1, 'any'))
  await db.sql`update webhook_endpoints set failing_since = now()`
  const due = await selectDue(db.sql, { organisations: [], failing: false })
  expect(due).toHaveLength(1)
  expect(await selectDue(db.sql, { organisations: [], failing: true })).toEqual([])
  const organisations = due.map(({ organisationId }) => organisationId)
  expect(await selectDue(db.sql, { organisations, failing: false })).toEqual([])
  const claim = async () => (await claimDeliveries(db.sql, due, 20_000))[0] as Claim
  const record = (claim: Claim, status: 'delivered' | 'pending') => {
    const outcome = { status, retryMs: status === 'pending' ? 1 : null, disabledReason: null }
    return recordAttempt(db.sql, { claim, reply: { code: 200, text: '', retryAfter: undefined }, outcome, pauseMs: 0 })
  }
  const late = await claim()
  expect(await claim()).toBeUndefined()
  await db.sql`update webhook_endpoints set claimed_until = now() - interval '1 second'`
  const holder = await claim()
  expect(holder.event.id).toBe(late.event.id)
  await releaseEndpoint(db.sql, late)
  await record(late, 'pending')
  expect(await claim()).toBeUndefined()
  await record(holder, 'delivered')
  expect(
    await db.sql`select status, attempts, failing_since from webhook_deliveries d join webhook_endpoints e on e.id = d.endpoint_id`,
  ).toEqual([{ status: 'delivered', attempts: 1, failing_since: null }])
})

test.each([
  ['was made while the clock was ahead', '1 hour'],
  ['ends now, by a clock of milliseconds,', '0'],
])('a claim that %s does not hold', async (_, endsIn) => {
  await emitOn(db, await addEndpoints(db, 1, 'any'))
  await db.transaction(async (sql) => {
    await sql`update webhook_endpoints set claimed_until = date_trunc('milliseconds', now()) + ${endsIn}::text::interval`
    const due = await selectDue(sql, { organisations: [], failing: false })
    expect(await claimDeliveries(sql, due, 20_000)).toHaveLength(1)
  })
  await db.sql`delete from webhook_deliveries`
})

test('first attempts of organisations whose endpoints all hang leave places for the next one', async () => {
  for (let number = 0; number < 6; number += 1) await emitOn(db, await addEndpoints(db, 20, 'slow'))
  const { sent, failures, stop } = startDeliverer(db, async (url) =>
    url === 'slow' ? new Promise(() => {}) : undefined,
  )
  // Each of the six holds as many as are free.
  await eventually(() => sent.length, 86)
  await emitOn(db, await addEndpoints(db, 1, 'fast'))
  await eventually(() => sent.at(-1)?.url, 'fast')
  await stop()
  expect(failures).toEqual([])
  expect(sent).toHaveLength(87)
})

const places = (organisationId: number, length: number, isFailing = false) =>
  Array.from({ length }, () => ({ organisationId, isFailing }))
const countOf = (chosen: { organisationId: number }[], id: number) =>
  chosen.filter(({ organisationId }) => organisationId === id).length

test('one organisation gets every place it needs, and many share the pool evenly', () => {
  expect(choosePlaces(places(1, 20), [])).toHaveLength(20)
  const many = Array.from({ length: 40 }, (_, id) => places(id, 20)).flat()
  const chosen = choosePlaces(many, [])
  for (let id = 0; id < 40; id += 1) expect(countOf(chosen, id)).toBeWithin(2, 4)
  expect(chosen.length).toBeLessThan(100)
  const everyone = Array.from({ length: 200 }, (_, id) => places(id, 1)).flat()
  expect(choosePlaces(everyone, [])).toHaveLength(100)
  expect(findExcluded(choosePlaces(everyone, []))).toBeNull()
})

test('an organisation that holds more gets the next place later, and none beyond its share', () => {
  const inFlight = places(1, 40)
  const due = [...places(1, 60), ...places(2, 20)]
  const chosen = choosePlaces(due, inFlight)
  expect([countOf(chosen, 1), countOf(chosen, 2)]).toEqual([0, 20])
  expect(findExcluded(inFlight)).toEqual({ organisations: [], failing: false })
  expect(findExcluded(places(1, 50))).toEqual({ organisations: [1], failing: false })
})

test('endpoints that fail get half of the pool', () => {
  const failing = Array.from({ length: 100 }, (_, id) => places(id, 1, true)).flat()
  expect(choosePlaces(failing, [])).toHaveLength(50)
  expect(findExcluded(failing.slice(0, 50))).toEqual({ organisations: [], failing: true })
  const both = choosePlaces([...failing, ...places(200, 20)], failing.slice(0, 49))
  expect([both.filter(({ isFailing }) => isFailing).length, countOf(both, 200)]).toEqual([1, 20])
})
