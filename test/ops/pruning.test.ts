import { expect, spyOn, test } from 'bun:test'
import { setRetention } from '../../src/orgs/manage.ts'
import { eventually } from '../program.ts'
import { createPrunings, fillEvery } from '../signals/fixtures.ts'
import { useNewTenant, useOwnService } from '../use.ts'
import { emit, insertEndpoints } from '../webhooks/emit.ts'

const service = useOwnService()
const tenant = useNewTenant(service, 10)

const dayMs = 86_400_000

const shiftClock = (ms: number) => service.clock.set(new Date(Date.now() + ms).toISOString())

/** Two signals, an idempotency key of a signal, one of another request and an event of GitHub, all of which have expired. */
async function fillExpired(): Promise<void> {
  const { db } = service.services
  const longAgo = new Date(Date.now() - 40 * dayMs).toISOString()
  await setRetention(db, service.clock, tenant.org, 30)
  await fillEvery(service, tenant.prompt, longAgo, 2)
  await db.sql`
    insert into idempotency_keys (organisation_id, key, prompt_id, signal_id, created_at)
    select organisation_id, 'a', id, 0, ${longAgo}::timestamptz from prompts where public_id = ${tenant.prompt}`
  await db.sql`
    insert into github_events (organisation_id, id, signature, received_at)
    select id, 'a', 'sha256=' || repeat('a', 64), ${longAgo}::timestamptz from organisations where public_id = ${tenant.org}`
}

test('an event is kept for 32 days, with its deliveries', async () => {
  service.clock.reset()
  const { sql } = service.services.db
  await insertEndpoints(service.services.db, tenant.org)
  const events = [await emit(service, tenant.org), await emit(service, tenant.org)]
  for (const [index, days] of [31, 33].entries()) {
    await sql`
      update webhook_events set created_at = now() - make_interval(days => ${days}) where public_id = ${events[index] as string}`
  }
  await createPrunings(service).prune()
  const kept = await sql`
    select v.public_id as id from webhook_events v join webhook_deliveries d on d.event_id = v.id`
  expect(kept).toEqual([{ id: events[0] }])
})

async function countRows(): Promise<number[]> {
  const [row = {}] = await service.services.db.sql`
    select
      (select count(*)::int from signals) as a, (select count(*)::int from idempotency_keys) as b,
      (select count(*)::int from github_events) as c`
  return Object.values(row) as number[]
}

test('rows expire by the time of the database, and nothing is pruned while the clock of the process differs', async () => {
  await fillExpired()
  const { prune, log, metrics } = createPrunings(service)
  const logged = spyOn(log, 'error')
  for (const seconds of [400 * 86_400, 310, -310]) {
    shiftClock(1_000 * seconds)
    await prune()
    expect(await countRows()).toEqual([2, 1, 1])
    const lines = (logged.mock.calls as unknown as [{ pruning: string; skew_seconds: number }, string][]).splice(0)
    expect(lines.map(([, message]) => message)).toEqual(Array(4).fill('pruning refused: clocks differ'))
    expect(lines.map(([{ pruning }]) => pruning).sort()).toEqual(['events', 'github', 'idempotency_keys', 'signals'])
    expect(Math.abs((lines[0]?.[0].skew_seconds ?? 0) - seconds)).toBeLessThan(10)
    const [, shown] = /^prompt_signals_clock_skew_seconds (\S+)$/m.exec(await metrics.text()) ?? []
    expect(Math.abs(Number(shown) - seconds)).toBeLessThan(10)
  }
  shiftClock(280_000)
  await prune()
  expect(logged.mock.calls).toEqual([])
  expect(await countRows()).toEqual([0, 0, 0])
})

test('the clocks are compared at the start and every minute', async () => {
  shiftClock(13 * dayMs)
  const { metrics, measureSkew } = createPrunings(service)
  const readSkew = async () => {
    const [, seconds] = /^prompt_signals_clock_skew_seconds (\S+)$/m.exec(await metrics.text()) ?? []
    return Math.round((1_000 * Number(seconds)) / dayMs)
  }
  await eventually(readSkew, 13)
  shiftClock(-13 * dayMs)
  await measureSkew()
  expect(await readSkew()).toBe(-13)
})

test('the audit log and a metric say how many signals of an organisation have expired, one entry a round', async () => {
  service.clock.reset()
  const { key } = await service.createKey(tenant, ['keys:read'])
  const { prune, metrics } = createPrunings(service)
  await setRetention(service.services.db, service.clock, tenant.org, 30)
  for (const [more, sum] of [
    [1_200, 1_200],
    [3, 1_203],
  ] as const) {
    await fillEvery(service, tenant.prompt, new Date(Date.now() - 40 * dayMs).toISOString(), more)
    await prune()
    const { body } = await service.get('/audit', key)
    const [last, before] = body.data
    expect(Date.now() - 30 * dayMs - Date.parse(last.details.before)).toBeLessThan(60_000)
    const details = { ...last.details, erased: more }
    expect(last).toMatchObject({ actor: 'retention', action: 'signals.expired', subject: tenant.org, details })
    expect(before.action).toBe(more === sum ? 'retention.changed' : 'signals.expired')
    expect(await metrics.text()).toContain(`\nprompt_signals_signals_expired_total ${sum}\n`)
  }
})
