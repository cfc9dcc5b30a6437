import { afterAll, beforeAll, expect, test } from 'bun:test'
import { systemClock } from '../../src/clock.ts'
import { readConfig } from '../../src/config.ts'
import type { Db } from '../../src/db/client.ts'
import { openDatabase } from '../../src/db/open.ts'
import { startDeliveries } from '../../src/webhooks/deliver.ts'
import type { Receiver } from '../../src/webhooks/send.ts'
import { choosePlaces, findExcluded } from '../../src/webhooks/share.ts'
import { eventually } from '../program.ts'
import type { TestService } from '../service.ts'
import { insertTenant } from '../tenant.ts'
import { useDatabase } from '../use.ts'
import { emit } from './emit.ts'

const database = useDatabase()
let db: Db

beforeAll(async () => {
  db = await openDatabase(readConfig({}, database.settings), {
    queryTimeoutMs: 4_500,
    maxConnections: 4,
    whenInUse: 'fail',
  })
})
afterAll(() => db.close())

const service = () => ({ services: { db, clock: systemClock } }) as TestService
const failures: unknown[] = []

async function addOrganisation(endpoints: number, url: string): Promise<string> {
  const { org } = await insertTenant(db, systemClock)
  await db.sql`
    insert into webhook_endpoints (public_id, organisation_id, kind, url, secret, created_at)
    select 'whe_' || o.id || 'x' || n, o.id, 'webhook', ${url}, 'whsec_x', now()
    from organisations o, generate_series(1, ${endpoints}::integer) n
    where o.public_id = ${org}`
  return org
}

function start(answer: (url: string) => Promise<{ code: number }>) {
  const sent: string[] = []
  const sendOnce = async ({ url }: Receiver, _event: unknown, _at: Date, stopped?: AbortSignal) => {
    sent.push(url)
    const aborted = new Promise<never>((_, reject) => stopped?.addEventListener('abort', reject))
    return { text: '', retryAfter: undefined, ...(await Promise.race([answer(url), aborted])) }
  }
  const observer = { attempted() {}, disabled() {}, measured() {} }
  const onFailure = (error: unknown) => failures.push(error)
  const { stop } = startDeliveries({ db, clock: systemClock, sendOnce, observer, isStopping: () => false, onFailure })
  return { sent, stop }
}

test('first attempts of organisations whose endpoints all hang leave places for the next one', async () => {
  for (let number = 0; number < 6; number += 1) await emit(service(), await addOrganisation(20, 'slow'))
  const { sent, stop } = start((url) => (url === 'slow' ? new Promise(() => {}) : Promise.resolve({ code: 204 })))
  // Each of the six holds as many as are free.
  await eventually(() => sent.length, 86)
  await emit(service(), await addOrganisation(1, 'fast'))
  await eventually(() => sent.includes('fast'), true)
  await stop()
  expect(failures).toEqual([])
  expect(sent.filter((url) => url === 'slow')).toHaveLength(86)
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
