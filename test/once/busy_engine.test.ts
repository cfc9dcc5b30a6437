import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { createClient } from '../client.ts'
import { createFolder, createOperator, createTenant, startServer } from '../program.ts'
import { openDb } from '../tenant.ts'

/** Well beyond the five seconds that a request may take. */
const busySeconds = 12
/** Far above what an idle process takes to answer, and far below `busySeconds`. */
const livenessMs = 4_000

test('health, metrics and deadlines go on while a long statement of a command runs', async () => {
  const settings = { DATA_DIR: join(createFolder(), 'data') }
  const server = await startServer(settings)
  const operator = createOperator(settings)
  const { key, prompt } = await createTenant(settings, 10)
  const client = await createClient(server.url)
  const post = () => client.postSignal(prompt, key)
  expect((await post()).status).toBe(201)

  const command = await openDb(settings)
  const begun = Promise.withResolvers<void>()
  let isBusy = true
  const busy = command
    .transaction(async (sql) => {
      // Once this is answered, the engine belongs to the command.
      await sql`select 1`
      begun.resolve()
      await sql`select pg_sleep(${busySeconds})`
    })
    .finally(() => {
      isBusy = false
    })
  await begun.promise
  const answered = post().then(({ status, headers }) => ({ status, retry: headers.has('retry-after'), isBusy }))
  const healthy: number[] = []
  while (isBusy) {
    const beganAt = performance.now()
    expect((await fetch(`${server.url}/livez`)).status).toBe(200)
    expect((await fetch(`${server.url}/metrics`)).status).toBe(200)
    healthy.push(performance.now() - beganAt)
    await Bun.sleep(20)
  }
  await busy
  await command.close()
  expect(Math.max(...healthy)).toBeLessThan(livenessMs)
  expect(await answered).toEqual({ status: 503, retry: true, isBusy: true })

  // The engine is back, and what was answered with an error is not recorded later.
  expect((await post()).status).toBe(201)
  expect((await operator.one('orgs', 'list')).used).toBe(2)
  expect(await server.stop()).toBe(0)
})
