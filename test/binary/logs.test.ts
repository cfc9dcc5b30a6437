import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { readableLine } from '../../src/log.ts'
import { redisPrefix, redisUrl } from '../harness.ts'
import { createFolder, eventually, PROGRAM, type Row } from '../program.ts'
import { findFreePort } from '../throwaway.ts'
import { useDatabase, useProgram } from '../use.ts'

const { server, settings, tenant } = useProgram(() => ({ REDIS_URL: redisUrl(), REDIS_PREFIX: redisPrefix() }))

async function lineOf(id: string): Promise<Row> {
  await eventually(() => server.log().filter(({ request_id }) => request_id === id).length, 1)
  return server.log().find(({ request_id }) => request_id === id) as Row
}

const send = (path: string, id: string, more: RequestInit = {}) =>
  fetch(server.url + path, { ...more, headers: { 'x-request-id': id, ...more.headers } })

test('one line for a request, with all that is needed to find it and nothing that is secret', async () => {
  const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
  await send(`/api/v1/prompts/${tenant.prompt}/history?page=1&token=hunter2`, 'history-1', {
    headers: { authorization: `Bearer ${tenant.key}`, traceparent: `00-${trace}-00f067aa0ba902b7-01` },
  })
  expect(await lineOf('history-1')).toEqual({
    level: 30,
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/),
    method: 'GET',
    route: '/api/v1/prompts/:prompt_id/history',
    status: 200,
    ms: expect.any(Number),
    org: tenant.org,
    key: tenant.keyId,
    request_id: 'history-1',
    trace_id: trace,
    msg: 'request',
  })
})

test('a request without a route is logged without its path and query', async () => {
  await send('/hunter2/nothing?key=hunter2', 'nothing-1')
  const { time, ms, ...line } = await lineOf('nothing-1')
  expect([typeof time, typeof ms]).toEqual(['string', 'number'])
  expect(line).toEqual({
    ...{ level: 30, method: 'GET', route: 'other', status: 404 },
    ...{ request_id: 'nothing-1', msg: 'request' },
  })
})

test('a request without a key has no organisation, and what came as a key is not shown', async () => {
  await send(`/api/v1/prompts/${tenant.prompt}/signals`, 'nobody-1', {
    method: 'POST',
    headers: { authorization: 'Bearer hunter2' },
  })
  expect(await lineOf('nobody-1')).toMatchObject({ status: 401, route: '/api/v1/prompts/:prompt_id/signals' })
  expect(Object.keys(await lineOf('nobody-1'))).not.toContain('org')
})

test('requests for health or metrics are not logged', async () => {
  for (const path of ['/livez', '/readyz', '/metrics']) await send(path, `quiet${path.replace('/', '-')}`)
  await send('/nothing', 'after-quiet')
  await lineOf('after-quiet')
  expect(server.log().filter(({ request_id }) => request_id?.startsWith('quiet'))).toEqual([])
})

test('logs when Redis is connected, and when the service starts and stops', async () => {
  await eventually(() => server.log().findLast(({ dependency }) => dependency)?.msg, 'dependency up')
  expect(await server.stop()).toBe(0)
  const said = server.log().filter(({ msg }) => msg !== 'request')
  // Leaving Redis is not losing it.
  expect(said.slice(-2).map(({ msg }) => msg)).toEqual(['stopping', 'stopped'])
  expect(said.find(({ msg }) => msg === 'serving')).toMatchObject({ url: server.url, runtime: `Bun ${Bun.version}` })
  expect(server.stdout() + server.stderr()).not.toContain('hunter2')
})

test('on a terminal the lines are short and for a person', async () => {
  let shown = ''
  const { PATH, HOME } = process.env
  const child = Bun.spawn([PROGRAM, 'serve'], {
    cwd: createFolder(),
    env: { PATH, HOME, PORT: '0', ...settings },
    terminal: {
      cols: 400,
      data(_, bytes) {
        shown += Buffer.from(bytes).toString()
      },
    },
  })
  await eventually(() => /serving url=http\S+/.test(shown), true, 20_000)
  const [, url] = /serving url=(http\S+)/.exec(shown) ?? []
  await fetch(`${url}/nothing`, { headers: { 'x-request-id': 'seen-1' } })
  await eventually(() => /^\d\d:\d\d:\d\d INFO {2}GET other 404 [\d.]+ ms seen-1\r?$/m.test(shown), true)
  child.kill('SIGTERM')
  expect(await child.exited).toBe(0)
  await eventually(() => /INFO {2}stopped\s*$/.test(shown), true)
})

const { settings: plain } = useDatabase()

/** More than a pipe holds. */
const logged = 1_000

test.each([
  ['on a full disk', '> /dev/full'],
  ['to a reader that has left', '> >(true)'],
  // The program itself keeps the pipe open, and never reads it.
  ['to a reader that has stalled', '0<> "$PIPE" > "$PIPE"'],
])('a service that cannot write its log %s serves, and stops when it is told to', async (_, redirection) => {
  const pipe = join(createFolder(), 'pipe')
  expect(Bun.spawnSync(['mkfifo', pipe]).exitCode).toBe(0)
  const port = await findFreePort()
  const service = Bun.spawn(['bash', '-c', `exec "$PROGRAM" serve --port ${port} ${redirection}`], {
    env: { PATH: process.env.PATH, PROGRAM, PIPE: pipe, ...plain },
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  try {
    const statusOf = (path: string) =>
      fetch(`http://127.0.0.1:${port}${path}`).then(
        ({ status }) => status,
        () => 0,
      )
    await eventually(() => statusOf('/readyz'), 200)
    for (let sent = 0; sent < logged; sent++) expect(await statusOf('/api/v1/prompts')).toBe(401)
    service.kill('SIGTERM')
    expect(await Promise.race([service.exited, Bun.sleep(10_000)])).toBe(0)
  } finally {
    service.kill('SIGKILL')
  }
})

const time = '2026-11-14T23:35:07.123Z'

test.each([
  [
    { level: 30, time, method: 'GET', route: '/api/v1/*', status: 404, ms: 1.25, request_id: 'r-1', msg: 'request' },
    '23:35:07 INFO  GET /api/v1/* 404 1.25 ms r-1\n',
  ],
  [
    { level: 40, time, dependency: 'redis', reason: 'gone', msg: 'dependency down' },
    '23:35:07 WARN  dependency down dependency=redis reason=gone\n',
  ],
  [
    { level: 50, time, err: { type: 'Error', message: 'no', stack: 'Error: no\n at x' }, msg: 'request failed' },
    '23:35:07 ERROR request failed err=no\n',
  ],
  [{ level: 30, time, seconds: 3, msg: 'a\u001b[2J\nb' }, '23:35:07 INFO  a [2J b seconds=3\n'],
])('%j is short, on one line and harmless on a terminal', (line, shown) => {
  expect(readableLine(JSON.stringify(line))).toBe(shown)
})
