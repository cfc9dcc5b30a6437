import { expect, test } from 'bun:test'
import { createHook } from '../github/hook.ts'
import { idOf, push, sha } from '../github/payloads.ts'
import { useService } from '../use.ts'

const service = useService()

const pushOf = (name: string) =>
  push({ after: sha(name), commits: [{ id: sha(name), modified: ['prompts/greeting.md'] }] })

test('deliveries that wait for one repository do not hold up those of others', async () => {
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
