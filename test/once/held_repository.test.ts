import { expect, test } from 'bun:test'
import type { Sql } from '../../src/db/client.ts'
import { recordReported } from '../../src/history/record.ts'
import { type Prompt, requirePrompt } from '../../src/prompts/find.ts'
import { markFilesSeen } from '../../src/prompts/link.ts'
import { createHook, paths } from '../github/hook.ts'
import { idOf, push, sha } from '../github/payloads.ts'
import { eventually } from '../program.ts'
import { organisationIdOf } from '../signals/fixtures.ts'
import { useService } from '../use.ts'

const service = useService()

async function countWaiting() {
  const [row] = await service.services.db.sql<{ waiting: number }>`
    select count(*)::int as waiting from pg_locks l
    join pg_stat_activity a on a.pid = l.pid and a.datname = current_database()
    where not l.granted`
  return row?.waiting
}

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
  let delivery = Promise.resolve(0)
  await db.transaction(async (sql) => {
    await recordReported(sql, clock, organisationId, [], { otherPrompts: [id] })
    delivery = hook.send('push', pushOf('waits'))
    await eventually(countWaiting, 1)
    await markFilesSeen(sql, organisationId, [{ promptId: id, state: 'present', movedTo: null, at: clock.now() }])
  })
  expect(await delivery).toBe(1)
})

test('a delivery that moves links does not deadlock with a batch that locks the same prompts in order', async () => {
  const { db, clock } = service.services
  const hook = await createHook(service)
  await hook.send('push', pushOf('before the rename'))
  const { key } = await service.createKey(hook.tenant, ['prompts:write'])
  await service.patch(`/prompts/${hook.prompts.greeting}`, key, { repository: 'acme/words', path: paths.greeting })
  const [first, second] = await Promise.all(
    [hook.prompts.greeting, hook.prompts.farewell].map((id) => requirePrompt(db.sql, id)),
  )
  const lock = (sql: Sql, { id, organisationId }: Prompt) =>
    recordReported(sql, clock, organisationId, [], { otherPrompts: [id] })
  let delivery = Promise.resolve(0)
  await db.transaction(async (sql) => {
    await lock(sql, first as Prompt)
    const renamed = { repository: 'Acme/Words', repositoryId: idOf('Acme/Prompts'), at: '2026-11-14T13:00:00Z' }
    delivery = hook.send('push', push({ after: sha('renamed'), commits: [{ modified: [paths.greeting] }], ...renamed }))
    await eventually(countWaiting, 1)
    await lock(sql, second as Prompt)
  })
  expect(await delivery).toBe(1)
})

test('a delivery that waits while one of its prompts is erased is recorded for the others', async () => {
  const { db } = service.services
  const hook = await createHook(service)
  const { id } = await requirePrompt(db.sql, hook.prompts.greeting)
  const commits = [{ modified: [paths.greeting, paths.farewell] }]
  let delivery = Promise.resolve(0)
  await db.transaction(async (sql) => {
    await sql`delete from prompts where id = ${id}`
    delivery = hook.send('push', push({ commits }))
    await eventually(countWaiting, 1)
  })
  expect(await delivery).toBe(1)
  expect(await hook.history('farewell')).toHaveLength(1)
})
