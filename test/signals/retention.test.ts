// Retentions: what is older than its organisation keeps is erased, by whichever replica gets to it.
import { afterAll, beforeAll, beforeEach, expect, spyOn, test } from 'bun:test'
import { createServices } from '../../src/deps.ts'
import { createKey } from '../../src/keys/manage.ts'
import { createLog } from '../../src/log.ts'
import { setRetention } from '../../src/orgs/manage.ts'
import { applyRetentions } from '../../src/signals/erase.ts'
import { engine } from '../harness.ts'
import { startService, type Tenant, type TestService } from '../service.ts'
import { fillPrompts } from './exports.ts'

let service: TestService
let tenant: Tenant

beforeAll(async () => {
  service = await startService()
})

afterAll(() => service.close())

beforeEach(async () => {
  service.clock.set('2026-11-20T12:00:00.000Z')
  tenant = await service.createTenant()
  // A round goes through all organisations.
  await service.services.db.sql`update organisations set retention_days = null`
})

/** Signals from before this month, which no caller can record: one a minute from a time on. */
async function fill(prompt: string, from: string, count: number): Promise<void> {
  await service.services.db.sql`
    insert into signals (organisation_id, prompt_id, value, created_at)
    select p.organisation_id, p.id, 'positive', ${from}::text::timestamptz + n * interval '1 minute'
    from prompts p, generate_series(0, ${count - 1}::int) n where p.public_id = ${prompt}`
}

async function countOf({ org }: Tenant): Promise<number | undefined> {
  const [row] = await service.services.db.sql<{ signals: number }>`
    select count(*) as signals from signals s join organisations o on o.id = s.organisation_id
    where o.public_id = ${org}`
  return row?.signals
}

const apply = (settled = () => false) => applyRetentions(service.services.db, service.clock, settled)

test('a retention erases what is past its days, for the organisations that have one', async () => {
  const { db, clock } = service.services
  const other = await service.createTenant(10)
  await setRetention(db, clock, tenant.org, 30)
  // The last instant that is kept is 30 days ago.
  for (const { prompt } of [tenant, other]) await fill(prompt, '2026-10-21T11:58:00Z', 4)
  await apply()
  expect([await countOf(tenant), await countOf(other)]).toEqual([2, 4])
  await setRetention(db, clock, tenant.org, null)
  service.clock.set('2026-12-31T12:00:00.000Z')
  await apply()
  expect(await countOf(tenant)).toBe(2)
})

test('a retention erases more than a step takes, of more prompts than are looked up at once', async () => {
  const { db, clock } = service.services
  await setRetention(db, clock, tenant.org, 30)
  await fill(tenant.prompt, '2026-10-01T00:00:00Z', 1_001)
  await fillPrompts(service, tenant.org, 205)
  await apply()
  expect(await countOf(tenant)).toBe(0)
})

test('a change of the retention is in the audit log', async () => {
  const { db, clock } = service.services
  const { key } = await createKey(db, clock, {
    org: tenant.org,
    name: 'auditor',
    scopes: ['keys:read'],
    expiresAt: null,
  })
  await setRetention(db, clock, tenant.org, 400)
  await setRetention(db, clock, tenant.org, 400)
  const { body } = await service.call('GET', '/api/v1/audit', { key })
  expect(body.data.map(({ action, details }: Record<string, unknown>) => [action, details]).slice(0, 2)).toEqual([
    ['retention.changed', { retention_days: 400 }],
    ['key.created', expect.anything()],
  ])
})

test('a round erases nothing while another is at work, and stops between two steps', async () => {
  const { db, clock } = service.services
  await setRetention(db, clock, tenant.org, 30)
  await fill(tenant.prompt, '2026-10-01T00:00:00Z', 1_001)
  // The embedded engine has one connection, and thus one round at a time.
  if (engine === 'postgres') {
    await db.transaction(async (sql) => {
      await sql`select pg_advisory_xact_lock(5168, 0)`
      await apply()
    })
    expect(await countOf(tenant)).toBe(1_001)
  }
  const settled = [false, true]
  await apply(() => settled.shift() as boolean)
  expect(await countOf(tenant)).toBe(501)
  await apply()
  expect(await countOf(tenant)).toBe(0)
})

test('a service applies the retentions at its intervals, until it stops', async () => {
  const { db } = service.services
  const intervals = spyOn(globalThis, 'setInterval')
  const { drain } = createServices({ db, clock: service.clock, log: createLog('silent') })
  const prunings = intervals.mock.calls.filter(([, everyMs]) => everyMs === 600_000) as unknown as [
    () => Promise<void>,
  ][]
  const prune = () => Promise.all(prunings.map(([work]) => work()))
  intervals.mockRestore()
  await setRetention(db, service.clock, tenant.org, 30)
  await fill(tenant.prompt, '2026-10-01T00:00:00Z', 2)
  await prune()
  expect(await countOf(tenant)).toBe(0)
  await fill(tenant.prompt, '2026-10-01T00:00:00Z', 2)
  await drain.run(0)
  await prune()
  expect(await countOf(tenant)).toBe(2)
})
