import { beforeEach, expect, test } from 'bun:test'
import { requireOrganisation, setRetention } from '../../src/orgs/manage.ts'
import { createRetentions } from '../../src/signals/erase.ts'
import { engine } from '../harness.ts'
import { rejectionOf } from '../program.ts'
import { useNewTenant, useService } from '../use.ts'
import { countOf, createPrunings, fillEvery } from './fixtures.ts'

const service = useService()
const tenant = useNewTenant(service)

beforeEach(async () => {
  service.clock.set('2026-11-20T12:00:00.000Z')
  // A round goes through all organisations.
  await service.services.db.sql`update organisations set retention_days = null`
})

const fill = (from: string, count: number, prompt = tenant.prompt) => fillEvery(service, prompt, from, count)

const expectRows = async (rows: number, of = tenant) => expect((await countOf(service, of)).rows).toBe(rows)

const apply = (isStopping = () => false) =>
  createRetentions(service.services.db, { isStopping, onErased() {} })(service.clock.now())

test('a retention erases older signals of the organisations that have one', async () => {
  const { db, clock } = service.services
  const other = await service.createTenant(10)
  await setRetention(db, clock, tenant.org, 30)
  // The last instant that is kept is 30 days ago.
  for (const { prompt } of [tenant, other]) await fill('2026-10-21T11:58:00Z', 4, prompt)
  await apply()
  await expectRows(2)
  await expectRows(4, other)
  await setRetention(db, clock, tenant.org, null)
  service.clock.set('2026-12-31T12:00:00.000Z')
  await apply()
  await expectRows(2)
})

test('a round skips while another one runs, and stops between two steps', async () => {
  const { db, clock } = service.services
  await setRetention(db, clock, tenant.org, 30)
  await fill('2026-10-01T00:00:00Z', 1_001)
  // The embedded engine has one connection, and thus one round at a time.
  if (engine === 'postgres') {
    await db.transaction(async (sql) => {
      await sql`select pg_advisory_xact_lock(5168, 0)`
      await apply()
    })
    await expectRows(1_001)
  }
  const isStopping = [false, true]
  await apply(() => isStopping.shift() as boolean)
  await expectRows(501)
  await apply()
  await expectRows(0)
})

test('a retention that is changed during a round erases nothing more', async () => {
  const { db, clock } = service.services
  await setRetention(db, clock, tenant.org, 30)
  await fill('2026-10-01T00:00:00Z', 1_001)
  let changed: Promise<unknown> | undefined
  const onErased = () => {
    changed ??= setRetention(db, clock, tenant.org, null)
  }
  const isStopping = () => false
  const { transaction } = db
  // The next step begins once the change is made.
  const inTurn: typeof transaction = async (...step) => {
    await changed
    return transaction(...step)
  }
  await createRetentions({ ...db, transaction: inTurn }, { isStopping, onErased })(clock.now())
  await expectRows(501)
})

test('an organisation whose signals cannot be erased does not keep the others from it', async () => {
  const { db, clock } = service.services
  const { organisationId: failing } = await requireOrganisation(db, tenant.org)
  const other = await service.createTenant(10)
  for (const { org, prompt } of [tenant, other]) {
    await setRetention(db, clock, org, 30)
    await fill('2026-10-01T00:00:00Z', 2, prompt)
  }
  const transaction: typeof db.transaction = (work, request, isolation) =>
    request?.tenant === failing ? Promise.reject(new Error('too slow')) : db.transaction(work, request, isolation)
  const applyAll = createRetentions({ ...db, transaction }, { isStopping: () => false, onErased() {} })
  expect(await rejectionOf(applyAll(clock.now()))).toBe('too slow')
  await expectRows(2)
  await expectRows(0, other)
})

test('a service applies the retentions at its intervals, until it stops', async () => {
  const { db } = service.services
  const { drain, prune } = createPrunings(service)
  service.clock.reset()
  await setRetention(db, service.clock, tenant.org, 30)
  await fill('2026-10-01T00:00:00Z', 2)
  await prune()
  await expectRows(0)
  await fill('2026-10-01T00:00:00Z', 2)
  await drain.run(0)
  await prune()
  await expectRows(2)
})
