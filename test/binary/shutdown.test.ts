// How the binary stops: no request that it has accepted is lost, and callers learn of the stop in time.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { createDatabase, type TestDatabase } from '../harness.ts'
import { createOperator, createTenant, eventually, run, type Server, startServer } from '../program.ts'

let database: TestDatabase
let server: Server
let tenant: Awaited<ReturnType<typeof createTenant>>

async function start(settings: Record<string, string> = {}): Promise<void> {
  server = await startServer({ ...database.settings, ...settings })
  tenant = await createTenant(createOperator(database.settings), 1_000_000)
}

beforeEach(async () => {
  database = await createDatabase()
})

afterEach(async () => {
  await server.kill()
  await database.close()
})

const words = () =>
  server
    .stdout()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line).msg)

const hasSaid = (word: string) => eventually(() => words().includes(word), true)

const post = () =>
  fetch(`${server.url}/api/v1/prompts/${tenant.prompt}/signals`, {
    method: 'POST',
    headers: { authorization: `Bearer ${tenant.key}`, 'content-type': 'application/json' },
    body: '{"value":"positive"}',
  })

/** A request whose body is not sent yet; the test sends it later. */
async function beginPost(): Promise<{ finish(): Promise<string> }> {
  const { hostname, port } = new URL(server.url)
  const socket = await new Promise<Socket>((resolve, reject) => {
    const opened = connect(Number(port), hostname, () => resolve(opened))
    opened.once('error', reject)
  })
  let answer = ''
  socket.on('data', (bytes) => {
    answer += bytes
  })
  socket.on('error', () => {})
  const ended = new Promise((resolve) => socket.once('close', resolve))
  const body = '{"value":"positive"}'
  socket.write(
    `POST /api/v1/prompts/${tenant.prompt}/signals HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${tenant.key}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 5)}`,
  )
  await eventually(async () => {
    const text = await (await fetch(`${server.url}/metrics`)).text()
    return /prompt_signals_http_requests_in_flight (\d+)/.exec(text)?.[1]
  }, '2')
  return {
    async finish() {
      socket.write(body.slice(5))
      await ended
      return answer
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
  expect((await post()).status).toBe(201)
  // A second signal ends it now, unless it comes so soon that it is the first one, passed on.
  const again = setInterval(() => process.kill(server.pid, 'SIGINT'), 100)
  expect(await stopped).toBe(1)
  clearInterval(again)
})

test('one signal that comes twice, from the terminal and from the program in between, is one', async () => {
  await start()
  const request = await beginPost()
  for (let times = 0; times < 5; times += 1) {
    process.kill(server.pid, 'SIGINT')
    await Bun.sleep(1)
  }
  expect(await request.finish()).toStartWith('HTTP/1.1 201 ')
  expect(await server.ended()).toBe(0)
})

test.each(['SIGTERM', 'SIGINT'] as const)('after %s a request under way is finished and recorded', async (signal) => {
  await start()
  const request = await beginPost()
  process.kill(server.pid, signal)
  await hasSaid('stopping')
  await eventually(async () => (await fetch(`${server.url}/livez`).catch(() => undefined))?.status, undefined)
  expect(await request.finish()).toStartWith('HTTP/1.1 201 ')
  expect(await server.ended()).toBe(0)
  expect(words()).toEqual(['serving', 'stopping', 'request', 'stopped'])
  expect(await createOperator(database.settings).one('orgs', 'list')).toMatchObject({ used: 1 })
})

test('requests that do not end in time are aborted, and the log says so', async () => {
  await start({ SHUTDOWN_SECONDS: '1' })
  await beginPost()
  const askedAt = performance.now()
  expect(await server.stop()).toBe(1)
  expect(performance.now() - askedAt).toBeLessThan(5_000)
  expect(words()).toEqual(['serving', 'stopping', 'shutdown timed out; aborting in-flight requests'])
})

/** Sends one request after the other on one connection, until a response closes it; returns how it ended. */
async function keepAsking(): Promise<string> {
  const { hostname, port } = new URL(server.url)
  const socket = connect(Number(port), hostname)
  const ended = Promise.withResolvers<string>()
  let [text, isLast] = ['', false]
  const body = '{"value":"positive"}'
  const send = () =>
    socket.write(
      `POST /api/v1/prompts/${tenant.prompt}/signals HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${tenant.key}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
  socket.on('connect', send)
  socket.on('data', (bytes) => {
    text += bytes
    const [head, rest] = text.split('\r\n\r\n')
    if (rest === undefined || rest.length < Number(/content-length: (\d+)/i.exec(text)?.[1])) return
    if (!text.startsWith('HTTP/1.1 201 ')) ended.resolve(text)
    isLast = /^connection: close\r?$/im.test(head as string)
    text = ''
    if (!isLast) send()
  })
  socket.on('error', ({ message }) => ended.resolve(message))
  socket.on('close', () => ended.resolve(isLast && text === '' ? 'closed after its last answer' : 'closed too early'))
  return ended.promise
}

test.each(['0', '1'])(
  'with DRAIN_SECONDS=%s no busy caller is cut off: each gets a response that closes its connection',
  async (seconds) => {
    await start({ DRAIN_SECONDS: seconds })
    const callers = Array.from({ length: 16 }, keepAsking)
    await eventually(async () => (await createOperator(database.settings).one('orgs', 'list')).used > 100, true)
    expect(await server.stop()).toBe(0)
    expect(await Promise.all(callers)).toEqual(Array(16).fill('closed after its last answer'))
  },
)

test('with SHUTDOWN_SECONDS=0 in-flight requests are aborted immediately, and the exit is orderly', async () => {
  await start({ SHUTDOWN_SECONDS: '0' })
  await beginPost()
  expect(await server.stop()).toBe(0)
  expect(words()).toEqual(['serving', 'stopping', 'stopped'])
})
