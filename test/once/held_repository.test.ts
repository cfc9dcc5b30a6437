import { expect, test } from 'bun:test'
import { recordEntries } from '../../src/history/record.ts'
import { requirePrompt } from '../../src/prompts/find.ts'
import { markFilesSeen } from '../../src/prompts/link.ts'
import { createHook, paths } from '../github/hook.ts'
import { idOf, push, sha } from '../github/payloads.ts'
import { eventually } from '../program.ts'
import { organisationIdOf } from '../signals/fixtures.ts'
import { useService } from '../use.ts'

const service = useService()

const pushOf = (name: string) => push({ after: sha(name), commits: [{ modified: [paths.greeting] }] })

test('deliveries that wait for one repository do not hold up those of others', async () => {
  const [held, other] = await Promise.all([createHook(service), createHook(service)])
  const id = await organisationIdOf(service, held.tenant)
  let waiting: Promise<number>[] = []
  await service.services.db.transaction(async (on) => {
    await on`select pg_advisory_xact_lock(hashtext('github'), hashtext(${`${id} ${idOf('Acme/Prompts')}`}))`
    waiting = Array.from({ length: 10 }, (_, index) => held.send('push', pushOf(`held ${index}`)))
    for (let index = 0; index < 5; index += 1) expect(await other.send('push', pushOf(`other ${index}`))).toBe(1)
  })
  expect(await Promise.all(waiting)).toEqual(Array(10).fill(1))
})

test('a delivery that waits for the prompts of a sync batch does not deadlock with it', async () => {
  const { db, clock } = service.services
  const hook = await createHook(service)
  const { id, organisationId } = await requirePrompt(db.sql, hook.prompts.greeting)
  const countWaiting = async () => {
    const [row] = await db.sql<{ waiting: number }>`
      select count(*)::int as waiting from pg_locks l
      join pg_stat_activity a on a.pid = l.pid and a.datname = current_database()
      where not l.granted`
    return row?.waiting
  }
  let delivery = Promise.resolve(0)
  await db.transaction(async (sql) => {
    await recordEntries(sql, clock, organisationId, [], { otherPrompts: [id] })
    delivery = hook.send('push', pushOf('waits'))
    await eventually(countWaiting, 1)
    await markFilesSeen(sql, organisationId, [{ promptId: id, state: 'present', movedTo: null, at: clock.now() }])
  })
  expect(await delivery).toBe(1)
})
