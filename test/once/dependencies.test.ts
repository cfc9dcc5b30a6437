import { afterAll, expect, test } from 'bun:test'
import { createClient } from '../client.ts'
import { redisPrefix, redisUrl } from '../harness.ts'
import { eventually, startServer } from '../program.ts'
import { createProxy, type TcpProxy } from '../proxy.ts'
import { startRedis } from '../services.ts'
import { useDatabase, useProgram } from '../use.ts'

let proxy: TcpProxy

const { client, operator, server, tenant } = useProgram(async () => {
  proxy = await createProxy(redisUrl())
  return { REDIS_URL: proxy.url, REDIS_PREFIX: redisPrefix() }
})

afterAll(() => proxy.close())

/** What the log says of Redis, or of the breaker in front of it: the level and the state of each line. */
const linesOf = (kind: 'dependency' | 'breaker') =>
  server
    .log()
    .filter((line) => line[kind] === 'redis')
    .map(({ level, msg, state }) => [level, state ?? msg])

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
  await operator.one('orgs', 'set-plan', tenant.org, 'free', '--monthly-limit', '2000')
  const post = async () => (await client.postSignal(tenant.prompt, tenant.key)).status
  // Redis is asked only near the limit.
  for (let round = 0; round < 18; round += 1) {
    const statuses = await Promise.all(Array.from({ length: 100 }, post))
    expect(new Set(statuses)).toEqual(new Set([201]))
  }
  // On a busy machine Redis may be late, and so down for a moment, more than once.
  const reach = async (redis: unknown[], breaker: unknown[], shown: number[]) => {
    const look = async () => {
      expect(await post()).toBe(201)
      // The room below the limit is for twenty seconds.
      await Bun.sleep(100)
      return [linesOf('dependency').at(-1), linesOf('breaker').at(-1) ?? closed, (await figures()).slice(0, 2)]
    }
    await eventually(look, [redis, breaker, shown])
  }
  const [up, down, open, closed] = [
    [30, 'dependency up'],
    [40, 'dependency down'],
    [40, 'open'],
    [30, 'closed'],
  ]
  await reach(up, closed, [1, 0])
  proxy.setClosing(true)
  proxy.cut('end')
  await reach(down, open, [0, 1])
  expect((await figures())[2]).toBeTrue()
  proxy.setClosing(false)
  await reach(up, closed, [1, 0])
  for (const lines of [linesOf('dependency'), linesOf('breaker')]) {
    expect(lines.filter((line, index) => Bun.deepEquals(line, lines[index - 1]))).toEqual([])
  }
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
