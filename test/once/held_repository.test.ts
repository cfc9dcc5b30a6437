import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHook } from '../github/hook.ts'
import { idOf, organizationRenamed, push, sha } from '../github/payloads.ts'
import { eventually } from '../program.ts'
import { startService, type TestService } from '../service.ts'

let service: TestService

beforeAll(async () => {
  service = await startService()
})

afterAll(() => service.close())

const pushOf = (name: string) =>
  push({ after: sha(name), commits: [{ id: sha(name), modified: ['prompts/greeting.md'] }] })

test('deliveries that wait for one repository leave their turn to those of others', async () => {
  const [held, other] = await Promise.all([createHook(service), createHook(service)])
  const { sql } = service.services.db
  const [row] = await sql<{ id: number }>`select id from organisations where public_id = ${held.tenant.org}`
  let waiting: Promise<number>[] = []
  await service.services.db.transaction(async (on) => {
    await on`select pg_advisory_xact_lock(hashtext('github'), hashtext(${`${row?.id} ${idOf('Acme/Prompts')}`}))`
    waiting = Array.from({ length: 10 }, (_, index) => held.send('push', pushOf(`held ${index}`)))
    for (let index = 0; index < 5; index += 1) expect(await other.send('push', pushOf(`other ${index}`))).toBe(1)
  })
  expect(await Promise.all(waiting)).toEqual(Array(10).fill(1))
})

test('an owner who is renamed while a delivery of a repository is under way waits for it, and neither fails', async () => {
  const hook = await createHook(service)
  expect(await hook.send('push', pushOf('known'))).toBe(1)
  const { db } = service.services
  const [row] = await db.sql<{ id: number }>`select id from organisations where public_id = ${hook.tenant.org}`
  const id = row?.id as number
  const countWaiting = async () => {
    const [found] = await db.sql<{ count: number }>`
      select count(*)::integer as count from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`
    return found?.count
  }
  let renaming: Promise<number> | undefined
  await db.transaction(async (on) => {
    // As a delivery does, which writes the repository first, and then its prompts.
    await on`select pg_advisory_xact_lock(hashtext('github'), hashtext(${`${id} ${idOf('Acme/Prompts')}`}))`
    await on`update github_repositories set seen_at = seen_at where organisation_id = ${id}`
    renaming = hook.send('organization', organizationRenamed('Globex', 'Acme'))
    await eventually(countWaiting, 1)
    await on`update prompts set name = name where organisation_id = ${id}`
  })
  expect(await renaming).toBe(0)
  expect(await hook.send('push', pushOf('late'))).toBe(1)
})
