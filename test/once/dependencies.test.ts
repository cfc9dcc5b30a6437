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

/** What the log says of Redis: the level and the message of each line. */
const lines = () =>
  server
    .log()
    .filter(({ dependency }) => dependency === 'redis')
    .map(({ level, msg }) => [level, msg])

const readFigure = async () => {
  const { text } = await client.call('GET', '/metrics')
  return Number(/^prompt_signals_dependency_up\{dependency="redis"(?:,error="[A-Z]+")?\} (\S+)$/m.exec(text)?.[1])
}

test('each change is one line and moves its figure', async () => {
  await operator.one('orgs', 'set-plan', tenant.org, 'free', '--monthly-limit', '2000')
  const post = async () => (await client.postSignal(tenant.prompt, tenant.key)).status
  // Redis is asked only near the limit.
  for (let round = 0; round < 18; round += 1) {
    const statuses = await Promise.all(Array.from({ length: 100 }, post))
    expect(new Set(statuses)).toEqual(new Set([201]))
  }
  // On a busy machine Redis may be late, and so down for a moment, more than once.
  const reach = async (line: unknown[], isUp: number) => {
    const look = async () => {
      expect(await post()).toBe(201)
      // The room below the limit is for twenty seconds.
      await Bun.sleep(100)
      return [lines().at(-1), await readFigure()]
    }
    await eventually(look, [line, isUp])
  }
  await reach([30, 'dependency up'], 1)
  proxy.setClosing(true)
  proxy.cut('end')
  await reach([40, 'dependency down'], 0)
  proxy.setClosing(false)
  await reach([30, 'dependency up'], 1)
  expect(lines().filter((line, index) => Bun.deepEquals(line, lines()[index - 1]))).toEqual([])
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
