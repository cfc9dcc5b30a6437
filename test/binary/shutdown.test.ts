// How the binary stops: no request that it has accepted is lost, and callers learn of the stop in time.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { sendSignal } from '../client.ts'
import { createDatabaseWithTenant, redisPrefix, redisUrl } from '../harness.ts'
import { eventually, run, type Server, startServer, startStopwatch } from '../program.ts'
import { formatSignal, isWhole, openConnection } from '../socket.ts'
import { useDatabase } from '../use.ts'

let server: Server

async function start(more: Record<string, string> = {}): Promise<void> {
  server = await startServer({ ...settings, ...more })
}

afterEach(() => server.kill())
const { operator, settings, tenant } = useDatabase(createDatabaseWithTenant, [beforeEach, afterEach])

const words = () => server.log().map(({ msg }) => msg)

const hasSaid = (word: string) => eventually(() => words().includes(word), true)

/** A request whose body is not sent yet; the test sends it later. */
async function beginPost(): Promise<{ finish(): Promise<string> }> {
  const { socket, until } = await openConnection(server.url)
  const text = formatSignal(tenant)
  socket.write(text.slice(0, -5))
  await eventually(async () => {
    const metrics = await (await fetch(`${server.url}/metrics`)).text()
    return /prompt_signals_http_requests_in_flight (\d+)/.exec(metrics)?.[1]
  }, '2')
  return {
    finish() {
      socket.write(text.slice(-5))
      return until(() => false)
    },
  }
}

test('is not ready from the signal on, and serves on until load balancers had time to notice', async () => {
  await start({ DRAIN_SECONDS: '600' })
  await eventually(async () => (await fetch(`${server.url}/readyz`)).status, 200)
  const stopped = server.stop()
  await hasSaid('stopping')
  const answer = await fetch(`${server.url}/readyz`)
  expect([answer.status, await answer.json()]).toEqual([503, { ready: false, stopping: true }])
  const { port } = new URL(server.url)
  expect((await run(['healthcheck'], { settings: { PORT: port } })).status).toBe(1)
  expect((await fetch(`${server.url}/livez`)).status).toBe(200)
  expect((await sendSignal(server.url, tenant)).status).toBe(201)
  const headers = { authorization: `Bearer ${tenant.key}` }
  const exported = await fetch(`${server.url}/api/v1/signals/export`, { headers })
  expect(await exported.text()).toMatch(/^\{.*"value":"positive".*\}\n$/)
  // A second signal ends it now, unless it comes so soon that it is the first one, passed on.
  const again = setInterval(() => process.kill(server.pid, 'SIGINT'), 100)
  expect(await stopped).toBe(1)
  clearInterval(again)
})

test('one signal that comes twice, from the terminal and from the program in between, is one', async () => {
  await start()
  const begun = await beginPost()
  for (let times = 0; times < 5; times += 1) {
    process.kill(server.pid, 'SIGINT')
    await Bun.sleep(1)
  }
  expect(await begun.finish()).toStartWith('HTTP/1.1 201 ')
  expect(await server.ended()).toBe(0)
})

test.each(['SIGTERM', 'SIGINT'] as const)('after %s a request under way is finished and recorded', async (signal) => {
  await start()
  const begun = await beginPost()
  process.kill(server.pid, signal)
  await hasSaid('stopping')
  await eventually(async () => (await fetch(`${server.url}/livez`).catch(() => undefined))?.status, undefined)
  expect(await begun.finish()).toStartWith('HTTP/1.1 201 ')
  expect(await server.ended()).toBe(0)
  expect(words()).toEqual(['serving', 'stopping', 'request', 'stopped'])
  expect(await operator.one('orgs', 'list')).toMatchObject({ used: 1 })
})

test('requests that do not end in time are aborted, and the log says so', async () => {
  await start({ SHUTDOWN_SECONDS: '1' })
  await beginPost()
  const stop = startStopwatch()
  expect(await server.stop()).toBe(1)
  expect(stop()).toBeLessThan(5_000)
  expect(words()).toEqual(['serving', 'stopping', 'shutdown timed out; aborting in-flight requests'])
})

/** Sends one request after the other on one connection, until a response closes it; returns how it ended. */
async function keepAsking(onRecorded: () => void): Promise<string> {
  const { socket, answer, isClosed, until } = await openConnection(server.url)
  for (;;) {
    const before = answer().length
    socket.write(formatSignal(tenant))
    await until((all) => isWhole(all.slice(before)))
    const last = answer().slice(before)
    if (!isWhole(last)) return 'closed too early'
    if (!last.startsWith('HTTP/1.1 201 ')) return last
    onRecorded()
    if (/^connection: close\r?$/im.test(last)) {
      await until(() => isClosed())
      return answer().slice(before) === last ? 'closed after its last answer' : 'answered more than was asked'
    }
  }
}

test.each(['0', '1'])(
  'with DRAIN_SECONDS=%s no busy caller is cut off: each gets a response that closes its connection, and all are recorded',
  async (seconds) => {
    await start({ DRAIN_SECONDS: seconds, REDIS_URL: redisUrl(), REDIS_PREFIX: redisPrefix() })
    let recorded = 0
    const callers = Array.from({ length: 16 }, () => keepAsking(() => (recorded += 1)))
    await eventually(() => recorded > 200, true, 30_000)
    expect(await server.stop()).toBe(0)
    expect(await Promise.all(callers)).toEqual(Array(16).fill('closed after its last answer'))
    // Nothing else was recorded, so that no caller has to send a signal again.
    expect(await operator.one('orgs', 'list')).toMatchObject({ used: recorded })
    expect(words().filter((word) => word === 'request')).toHaveLength(recorded)
    const others = server.log().filter(({ msg, dependency, breaker }) => msg !== 'request' && !dependency && !breaker)
    expect(others.map(({ msg }) => msg)).toEqual(['serving', 'stopping', 'stopped'])
  },
)

test('with SHUTDOWN_SECONDS=0 in-flight requests are aborted immediately, and the exit is orderly', async () => {
  await start({ SHUTDOWN_SECONDS: '0' })
  await beginPost()
  expect(await server.stop()).toBe(0)
  expect(words()).toEqual(['serving', 'stopping', 'stopped'])
})
