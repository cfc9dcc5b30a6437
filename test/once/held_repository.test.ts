import { expect, test } from 'bun:test'
import type { Sql } from '../../src/db/client.ts'
import { recordReported } from '../../src/history/record.ts'
import { type Prompt, requirePrompt } from '../../src/prompts/find.ts'
import { markFilesSeen } from '../../src/prompts/link.ts'
import { createHook, paths } from '../github/hook.ts'
import { idOf, push, sha } from '../github/payloads.ts'
import { untilLocked } from '../program.ts'
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

/** Sends a push that has to wait for what the transaction has locked first, and then for what is done meanwhile. */
async function deliverDuring(
  hook: Awaited<ReturnType<typeof createHook>>,
  pushed: object,
  lock: (sql: Sql) => Promise<unknown>,
  meanwhile: (sql: Sql) => Promise<unknown> = async () => {},
): Promise<void> {
  const { db } = service.services
  let delivery = Promise.resolve(0)
  await db.transaction(async (sql) => {
    await lock(sql)
    delivery = hook.send('push', pushed)
    await untilLocked(db, '')
    await meanwhile(sql)
  })
  expect(await delivery).toBe(1)
}

const lockPrompt = (sql: Sql, { id, organisationId }: Prompt) =>
  recordReported(sql, service.clock, organisationId, [], { otherPrompts: [id] })

const promptOf = (id: string) => requirePrompt(service.services.db.sql, id)

test('a delivery that waits for the prompts of a sync batch does not deadlock with it', async () => {
  const hook = await createHook(service)
  const prompt = await promptOf(hook.prompts.greeting)
  const seen = { promptId: prompt.id, state: 'present', movedTo: null, at: service.clock.now() } as const
  await deliverDuring(
    hook,
    pushOf('waits'),
    (sql) => lockPrompt(sql, prompt),
    (sql) => markFilesSeen(sql, prompt.organisationId, [seen]),
  )
})

test('a delivery that moves links does not deadlock with a batch that locks the same prompts in order', async () => {
  const hook = await createHook(service)
  await hook.send('push', pushOf('before the rename'))
  const { key } = await service.createKey(hook.tenant, ['prompts:write'])
  await service.patch(`/prompts/${hook.prompts.greeting}`, key, { repository: 'acme/words', path: paths.greeting })
  const [first, second] = [await promptOf(hook.prompts.greeting), await promptOf(hook.prompts.farewell)]
  const renamed = { repository: 'Acme/Words', repositoryId: idOf('Acme/Prompts'), at: '2026-11-14T13:00:00Z' }
  await deliverDuring(
    hook,
    push({ after: sha('renamed'), commits: [{ modified: [paths.greeting] }], ...renamed }),
    (sql) => lockPrompt(sql, first),
    (sql) => lockPrompt(sql, second),
  )
})

test('a delivery that waits while one of its prompts is erased is recorded for the others', async () => {
  const hook = await createHook(service)
  const { id } = await promptOf(hook.prompts.greeting)
  const pushed = push({ commits: [{ modified: [paths.greeting, paths.farewell] }] })
  await deliverDuring(hook, pushed, (sql) => sql`delete from prompts where id = ${id}`)
  expect(await hook.history('farewell')).toHaveLength(1)
})
