// What the log and the metrics say when Redis is lost and found again.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createServer, connect as dial, type Server as NetServer, type Socket } from 'node:net'
import postgres from 'postgres'
import { createDatabase, redisPrefix, redisUrl, type TestDatabase } from '../harness.ts'
import { createOperator, createTenant, eventually, type Row, type Server, startServer } from '../program.ts'

let database: TestDatabase
let server: Server
let proxy: NetServer
const sockets = new Set<Socket>()
let isCut = false

/** Stands between the service and Redis, and can be cut. */
function startProxy(): Promise<number> {
  const target = new URL(redisUrl())
  proxy = createServer((guest) => {
    if (isCut) return guest.destroy()
    const host = dial(Number(target.port), target.hostname)
    for (const socket of [guest, host]) {
      sockets.add(socket)
      socket.on('error', () => {})
    }
    guest.pipe(host).pipe(guest)
  })
  return new Promise((resolve) => {
    proxy.listen(0, '127.0.0.1', () => resolve((proxy.address() as { port: number }).port))
  })
}

beforeAll(async () => {
  database = await createDatabase()
  const REDIS_URL = `redis://127.0.0.1:${await startProxy()}`
  server = await startServer({ ...database.settings, REDIS_URL, REDIS_PREFIX: redisPrefix() })
})

afterAll(async () => {
  expect(await server.stop()).toBe(0)
  proxy.close()
  await database.close()
})

const events = () =>
  server
    .stdout()
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Row)
    .filter(({ dependency, breaker }) => dependency || breaker)
    .map(({ level, msg, dependency, breaker, state }) => [
      level,
      dependency ? `${dependency} ${msg}` : `${breaker} ${state}`,
    ])

const figures = async () => {
  const text = await (await fetch(`${server.url}/metrics`)).text()
  const of = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])
  return [
    of('prompt_signals_dependency_up\\{dependency="redis"\\}'),
    of('prompt_signals_gate_breaker_open'),
    of('prompt_signals_gate_decisions_total\\{decision="unreachable"\\}') > 0,
  ]
}

test('each change is one line and moves its figures', async () => {
  const { org, prompt, key } = await createTenant(createOperator(database.settings), 10_000)
  // Only a month that is nearly full makes the service ask Redis.
  const sql = postgres(database.settings.DATABASE_URL as string, { max: 1 })
  await sql`
    insert into signal_usage (organisation_id, month, used)
    select id, date_trunc('month', now() at time zone 'utc'), 9000 from organisations where public_id = ${org}`
  await sql.end()
  const post = async () =>
    (
      await fetch(`${server.url}/api/v1/prompts/${prompt}/signals`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: '{"value":"positive"}',
      })
    ).status
  await eventually(() => events().at(-1), [30, 'redis dependency up'])
  expect(await post()).toBe(201)
  expect((await figures()).slice(0, 2)).toEqual([1, 0])

  // On a busy machine the first attempts may have failed.
  const known = events().length
  isCut = true
  for (const socket of sockets) socket.destroy()
  // Redis is asked for each signal, and left out once that has failed twice.
  await eventually(async () => [await post(), events().length], [201, known + 2])
  expect(events().slice(known)).toEqual([
    [40, 'redis dependency down'],
    [40, 'redis open'],
  ])
  expect(await figures()).toEqual([0, 1, true])

  isCut = false
  await eventually(() => events().length, known + 3, 10_000)
  await eventually(async () => [await post(), events().length], [201, known + 4])
  expect(events().slice(known + 2)).toEqual([
    [30, 'redis dependency up'],
    [30, 'redis closed'],
  ])
  expect((await figures()).slice(0, 2)).toEqual([1, 0])
})
