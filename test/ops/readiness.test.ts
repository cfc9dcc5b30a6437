import { expect, test } from 'bun:test'
import type { Db } from '../../src/db/client.ts'
import { createDrain } from '../../src/http/drain.ts'
import { createReadiness } from '../../src/ops/readiness.ts'
import { eventually } from '../program.ts'
import { useOwnService, useTenant } from '../use.ts'

/** A database that counts its queries, and returns a result when the test says so. */
function fakeDatabase() {
  let queries = 0
  const answers: ((rows: object[]) => void)[] = []
  const sql = () => {
    queries += 1
    return new Promise<object[]>((resolve) => answers.push(resolve))
  }
  return {
    db: { sql, requireWritable: async () => {} } as unknown as Db,
    queries: () => queries,
    answer() {
      for (const resolve of answers.splice(0)) resolve([])
    },
  }
}

test('probes at the same time share one look at the database, and so do those of the next second', async () => {
  const { db, queries, answer } = fakeDatabase()
  const readiness = createReadiness(db, undefined, [], createDrain())
  const probes = Promise.all([readiness.check(), readiness.check(), readiness.check()])
  answer()
  const ready = { ready: true, database: 'up', redis: 'unused' }
  expect(await probes).toEqual([ready, ready, ready] as never)
  expect(await readiness.check()).toEqual(ready as never)
  // The schema and the look-up of keys.
  expect(queries()).toBe(2)
})

test('a database that does not answer is down within half a second', async () => {
  const { db } = fakeDatabase()
  const report = createReadiness(db, undefined, [], createDrain()).check()
  // Of two timers the shorter one is the first, however late a busy machine lets them both be.
  const later = Bun.sleep(1_000).then(() => 'later')
  const down = { ready: false, database: 'down', reason: 'unreachable', redis: 'unused' } as const
  expect(await Promise.race([report, later])).toEqual(down)
})

test('is not ready from the moment of the stop, even for a probe that was under way', async () => {
  const { db, answer } = fakeDatabase()
  const drain = createDrain()
  const readiness = createReadiness(db, undefined, [], drain)
  const underWay = readiness.check()
  const drained = drain.run(0)
  answer()
  const stopping = { ready: false, stopping: true } as const
  expect([await underWay, await readiness.check()]).toEqual([stopping, stopping])
  await drained
})

const service = useOwnService()
const tenant = useTenant(service)

test('is not ready while the look-up that every request needs cannot run', async () => {
  const { sql } = service.services.db
  const readiness = async () => {
    const { status, body } = await service.call('GET', '/readyz')
    return [status, body.reason]
  }
  await eventually(readiness, [200, undefined])
  await sql`alter table api_keys rename to api_keys_away`
  try {
    await eventually(readiness, [503, 'failing'])
    await eventually(async () => (await service.getHistory(tenant.prompt, tenant.key)).status, 500)
  } finally {
    await sql`alter table api_keys_away rename to api_keys`
  }
  await eventually(readiness, [200, undefined])
})
