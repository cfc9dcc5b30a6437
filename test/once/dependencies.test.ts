import { afterAll, expect, test } from 'bun:test'
import { createClient } from '../client.ts'
import { redisPrefix, redisUrl } from '../harness.ts'
import { eventually, startServer } from '../program.ts'
import { createProxy, type TcpProxy } from '../proxy.ts'
import { startRedis } from '../redis_servers.ts'
import { useDatabase, useProgram } from '../use.ts'

let proxy: TcpProxy

const { client, operator, server, tenant } = useProgram(async () => {
  proxy = await createProxy(redisUrl())
  return { REDIS_URL: proxy.url, REDIS_PREFIX: redisPrefix() }
})

afterAll(() => proxy.close())

const events = () =>
  server
    .log()
    .filter(({ dependency, breaker }) => dependency || breaker)
    .map(({ level, msg, dependency, breaker, state }) => [
      level,
      dependency ? `${dependency} ${msg}` : `${breaker} ${state}`,
    ])

const figures = async () => {
  const { text } = await client.call('GET', '/metrics')
  const of = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])
  return [
    of('prompt_signals_dependency_up\\{dependency="redis"(?:,error="[A-Z]+")?\\}'),
    of('prompt_signals_gate_breaker_open'),
    of('prompt_signals_gate_decisions_total\\{decision="unreachable"\\}') > 0,
  ]
}

test('each change is one line and moves its figures', async () => {
  await operator.one('orgs', 'set-plan', tenant.org, 'free', '--monthly-limit', '1000')
  const post = async () => (await client.postSignal(tenant.prompt, tenant.key)).status
  await eventually(() => events().at(-1), [30, 'redis dependency up'])
  // Redis is asked only near the limit.
  for (let round = 0; round < 9; round += 1) {
    const statuses = await Promise.all(Array.from({ length: 100 }, post))
    expect(new Set(statuses)).toEqual(new Set([201]))
  }
  expect((await figures()).slice(0, 2)).toEqual([1, 0])

  // On a busy machine the first attempts may have failed.
  const known = events().length
  proxy.setClosing(true)
  proxy.cut('end')
  // The breaker opens when Redis has failed twice.
  await eventually(async () => [await post(), events().length], [201, known + 2])
  expect(events().slice(known)).toEqual([
    [40, 'redis dependency down'],
    [40, 'redis open'],
  ])
  expect(await figures()).toEqual([0, 1, true])

  proxy.setClosing(false)
  await eventually(() => events().length, known + 3, 10_000)
  await eventually(async () => [await post(), events().length], [201, known + 4])
  expect(events().slice(known + 2)).toEqual([
    [30, 'redis dependency up'],
    [30, 'redis closed'],
  ])
  expect((await figures()).slice(0, 2)).toEqual([1, 0])
})

const database = useDatabase()

test('a Redis that rejects commands is down, and its word for it is in the readiness, the metrics and the log', async () => {
  const replica = await startRedis('--replicaof', '127.0.0.1 1')
  const settings = { ...database.settings, REDIS_URL: replica.url, REDIS_PREFIX: redisPrefix() }
  const started = await startServer(settings)
  const { call } = await createClient(started.url)
  const ready = { ready: true, database: 'up', redis: 'down', redis_error: 'READONLY' }
  await eventually(async () => (await call('GET', '/readyz')).body, ready)
  expect((await call('GET', '/metrics')).text).toContain(
    'prompt_signals_dependency_up{dependency="redis",error="READONLY"} 0',
  )
  expect(started.stdout()).toContain('"reason":"READONLY You can\'t write against a read only replica')
  expect(await started.stop()).toBe(0)
  await replica.stop()
})
