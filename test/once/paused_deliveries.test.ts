import { expect, test } from 'bun:test'
import { openClient } from '../../src/db/client.ts'
import { eventually } from '../program.ts'
import { createProxy } from '../proxy.ts'
import { useDatabase } from '../use.ts'
import { addEndpoints, emitOn, startDeliverer } from '../webhooks/emit.ts'

const database = useDatabase()

test('a database that pauses loses no event, and repeats none under another id', async () => {
  const url = database.settings.DATABASE_URL as string
  const proxy = await createProxy(url)
  const direct = openClient({ url, ssl: false }, { queryTimeoutMs: 0, maxConnections: 2 })
  const paused = openClient({ url: proxy.url, ssl: false }, { queryTimeoutMs: 1_000, maxConnections: 2 })
  const answers = Promise.withResolvers<number>()
  const { sent, failures, stop } = startDeliverer(paused, () => answers.promise)
  const org = await addEndpoints(direct, 3, 'any')
  const first = await emitOn(direct, org)
  await eventually(() => sent.length, 3)

  const failedBefore = failures.length
  proxy.setPaused(true)
  answers.resolve(204)
  const second = await emitOn(direct, org)
  // None of the three can record its answer.
  await eventually(() => failures.length >= failedBefore + 3, true)
  expect(sent).toHaveLength(3)
  await direct.sql`update webhook_deliveries set next_attempt_at = now() where status = 'pending'`
  proxy.setPaused(false)

  const statesOf = () => direct.sql`select status, attempts from webhook_deliveries`
  await eventually(statesOf, Array(6).fill({ status: 'delivered', attempts: 1 }))
  const sentOf = (event: string) => sent.filter(({ id }) => id === event).length
  expect([sentOf(first), sentOf(second), sent.length]).toEqual([6, 3, 9])
  // Resolves only when no attempt is left.
  await stop()
  await Promise.all([direct.close(), paused.close()])
  proxy.close()
})
