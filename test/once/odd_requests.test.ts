// The service behind deploy/nginx.conf: requests that HTTP allows and the runtime leaves without a proper answer, and the address that
// a client is counted by.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { createFolder, eventually } from '../program.ts'
import { formatRequest, formatSignal, openConnection } from '../socket.ts'
import { findFreePort } from '../throwaway.ts'
import { useProgram } from '../use.ts'

type Sent = { text: string; halfClose?: boolean }

const body = '{"value":"positive"}'

/** Everything that the server sends until it closes the connection, or until that many responses have arrived. */
async function answersTo(url: string, { text, halfClose = false }: Sent, wanted: number, localAddress = '127.0.0.1') {
  const { socket, until } = await openConnection(url, { allowHalfOpen: true, localAddress })
  if (halfClose) socket.end(text)
  else socket.write(text)
  const answer = await until((sofar) => completeIn(sofar) === wanted)
  socket.destroy()
  return answer
}

const statusesIn = (answer: string): number[] =>
  [...answer.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))

const completeIn = (answer: string): number =>
  answer.split('HTTP/1.1 ').filter((one) => {
    const [head = '', content] = one.split('\r\n\r\n')
    return content !== undefined && content.length >= Number(/^content-length: (\d+)/im.exec(head)?.[1])
  }).length

/** The runtime without the service, with a handler that waits. */
const runtime = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    await request.text()
    await Bun.sleep(20)
    return new Response('ok')
  },
})
const started: Bun.Subprocess[] = []
let nginxUrl: string

afterAll(async () => {
  for (const nginx of started) nginx.kill()
  await Promise.all([...started.map(({ exited }) => exited), runtime.stop(true)])
})
const perHour = 30
const { server, tenant } = useProgram(() => ({
  TRUSTED_PROXIES: '127.0.0.1, ::1',
  RATE_LIMIT_PER_ADDRESS: `${perHour}/h`,
}))

/** Starts nginx before these servers, and returns its URL. */
async function startNginx(hosts: string[]): Promise<string> {
  const address = `127.0.0.1:${await findFreePort()}`
  const url = `http://${address}`
  const folder = createFolder()
  const file = join(folder, 'nginx.conf')
  const site = (await Bun.file('deploy/nginx.conf').text())
    .replace(/ *server 127\.0\.0\.1:3000.*;/, (line) =>
      hosts.map((host) => line.replace('127.0.0.1:3000', host)).join('\n'),
    )
    .replace('listen 80', `listen ${address}`)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `${kind}_temp_path ${folder}/${kind};`,
  )
  await Bun.write(
    file,
    `daemon off; master_process off; pid ${folder}/pid; events {} http { access_log off; ${temporary.join(' ')}\n${site}}`,
  )
  const command = [process.env.NGINX_PATH ?? '', '-e', join(folder, 'errors'), '-c', file]
  started.push(Bun.spawn(command, { stdio: ['ignore', 'ignore', 'inherit'] }))
  await eventually(() => fetch(`${url}/livez`).then(({ ok }) => ok, String), true, 20_000)
  return url
}

beforeAll(async () => {
  nginxUrl = await startNginx([new URL(server.url).host])
})

test('while two servers behind nginx restart in turn, every request is answered', async () => {
  const ports = [await findFreePort(), await findFreePort()]
  const start = (port: number) => Bun.serve({ port, hostname: '127.0.0.1', fetch: () => new Response('ok') })
  const servers = ports.map(start)
  const url = await startNginx(ports.map((port) => `127.0.0.1:${port}`))
  for (const [index, port] of ports.entries()) {
    await servers[index]?.stop(true)
    for (let n = 0; n < 10; n += 1) expect((await fetch(url)).status).toBe(200)
    servers[index] = start(port)
  }
  for (const one of servers) await one.stop(true)
})

const chunked = (post: string) =>
  post
    .replace(/Content-Length: \d+/, 'Transfer-Encoding: chunked')
    .replace(body, `${body.length.toString(16)}\r\n${body}\r\n0\r\n`)

/** When the answer of the runtime changes, change docs/operating.md, too. Behind nginx, every answer has a body. */
test.each<[string, (post: string) => string | Sent, string, number[]]>([
  ['two pipelined requests', (post) => post + post, '', [201, 201]],
  ['a half-close after the request', (post) => ({ text: post, halfClose: true }), '', [201]],
  ['a stray line break after the body', (post) => `${post}\r\n`, '400 Bad Request', [201]],
  ['a stray line break before the request', (post) => `\r\n${post}`, '400 Bad Request', [201]],
  ['a trailer', (post) => `${chunked(post)}X-Checksum: 1\r\n\r\n`, '400 Bad Request', [201]],
  ['an unknown method', (post) => post.replace('POST', 'FOO'), '', [502]],
  ['no host', (post) => post.replace('Host: test\r\n', ''), '400 Bad Request', [400]],
  [
    'headers that are too large',
    (post) => post.replace('Host: test', `Host: test\r\nX-Large: ${'x'.repeat(100_000)}`),
    '431 Request Header Fields Too Large',
    [400],
  ],
  ['another version of HTTP', (post) => post.replace('HTTP/1.1', 'HTTP/3.0'), '505 HTTP Version Not Supported', [505]],
])('the runtime leaves %s without a proper answer, and nginx does not', async (_, spoil, bare, statuses) => {
  const spoilt = spoil(formatSignal(tenant, [], body))
  const sent = typeof spoilt === 'string' ? { text: spoilt } : spoilt
  expect(await answersTo(runtime.url.href, sent, 1)).toBe(bare && `HTTP/1.1 ${bare}\r\nConnection: close\r\n\r\n`)
  const answer = await answersTo(nginxUrl, sent, statuses.length)
  expect(statusesIn(answer)).toEqual(statuses)
  expect(answer.split('\r\n\r\n').slice(1).join('')).toMatch(/"data"|<html>/)
})

/** The status for a client at this address of the machine, which may claim another one. */
async function statusOf(
  url: string,
  from: string,
  claimed?: string,
  path = '/api/v1/keys',
): Promise<number | undefined> {
  const text = formatRequest('GET', path, claimed ? [`X-Forwarded-For: ${claimed}`] : [])
  return statusesIn(await answersTo(url, { text }, 1, from))[0]
}

async function exhaust(url: string, from: string): Promise<void> {
  for (let nth = 1; nth <= perHour; nth += 1) expect(await statusOf(url, from, `198.51.100.${nth}`)).toBe(401)
  expect(await statusOf(url, from, '198.51.100.99')).toBe(429)
}

test('each client behind nginx has its own rate, whatever address it claims', async () => {
  await exhaust(nginxUrl, '127.0.0.2')
  expect(await statusOf(nginxUrl, '127.0.0.2', '127.0.0.1, unknown')).toBe(429)
  expect(await statusOf(nginxUrl, '127.0.0.3')).toBe(401)
  expect(await statusOf(nginxUrl, '127.0.0.2', undefined, '/livez')).toBe(200)
})

test('a client that goes past nginx cannot choose an address, and the log holds none', async () => {
  await exhaust(server.url, '127.0.0.4')
  expect(server.stdout()).not.toMatch(/127\.0\.0\.[2-4]|198\.51\.100/)
})
