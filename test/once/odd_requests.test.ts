// Requests that HTTP allows and the runtime leaves without a proper answer, and how they fare behind a proxy.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { join } from 'node:path'
import { startNginx } from '../nginx.ts'
import { createFolder, eventually } from '../program.ts'
import { useProgram } from '../use.ts'

type Target = { port: number; host: string } | { path: string }
type Sent = { text: string; halfClose?: boolean }

const body = '{"value":"positive"}'

/** Everything that the server sends until it closes the connection, or until that many responses have arrived. */
function answersTo(target: Target, { text, halfClose = false }: Sent, wanted: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ ...target, allowHalfOpen: true })
    let answer = ''
    const end = () => {
      resolve(answer)
      socket.destroy()
    }
    socket.on('data', (bytes) => {
      answer += bytes
      if (completeIn(answer) === wanted) end()
    })
    socket.on('end', end)
    socket.on('error', end)
    if (halfClose) socket.end(text)
    else socket.write(text)
  })
}

const statusesIn = (answer: string): number[] =>
  [...answer.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))

/** How many whole responses have arrived. */
const completeIn = (answer: string): number =>
  answer.split('HTTP/1.1 ').filter((one) => {
    const [head = '', content] = one.split('\r\n\r\n')
    return content !== undefined && content.length >= Number(/^content-length: (\d+)/im.exec(head)?.[1])
  }).length

/** Requests for one resource, by what is odd about them. */
function oddRequests(path: string, ...headers: string[]): Record<string, Sent> {
  const head = (...more: string[]) =>
    `POST ${path} HTTP/1.1\r\n${['Host: test', 'Content-Type: application/json', ...headers, ...more].join('\r\n')}\r\n\r\n`
  const post = `${head(`Content-Length: ${body.length}`)}${body}`
  const chunks = `${body.length.toString(16)}\r\n${body}\r\n0\r\n`
  return {
    'two pipelined requests': { text: post + post },
    'a half-close after the request': { text: post, halfClose: true },
    'a stray line break after the body': { text: `${post}\r\n` },
    'a stray line break before the request': { text: `\r\n${post}` },
    'a trailer': { text: `${head('Transfer-Encoding: chunked')}${chunks}X-Checksum: 1\r\n\r\n` },
    'an unknown method': { text: post.replace('POST', 'FOO') },
    'no host': { text: post.replace('Host: test\r\n', '') },
    'headers that are too large': { text: post.replace('Host: test', `Host: test\r\nX-Large: ${'x'.repeat(100_000)}`) },
    'another version of HTTP': { text: post.replace('HTTP/1.1', 'HTTP/3.0') },
  }
}

/** When one of these fails, the runtime has learned to answer: take the case out of docs/operating.md. */
describe('the runtime alone, with a handler that waits', () => {
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      await request.text()
      await Bun.sleep(20)
      return new Response('ok')
    },
  })
  afterAll(() => server.stop(true))
  const target = { port: server.port as number, host: '127.0.0.1' }
  const badRequest = 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n'

  test.each([
    ['two pipelined requests', ''],
    ['a half-close after the request', ''],
    ['a stray line break after the body', badRequest],
    ['a stray line break before the request', badRequest],
    ['a trailer', badRequest],
    ['an unknown method', ''],
    ['no host', badRequest],
    ['headers that are too large', 'HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\n\r\n'],
    ['another version of HTTP', 'HTTP/1.1 505 HTTP Version Not Supported\r\nConnection: close\r\n\r\n'],
  ])('answers %s with %p', async (name, answer) => {
    expect(await answersTo(target, oddRequests('/')[name] as Sent, 1)).toBe(answer)
  })
})

describe('the service behind nginx, set up as in deploy/nginx.conf', () => {
  let nginx: Awaited<ReturnType<typeof startNginx>>
  let target: { path: string }

  afterAll(() => nginx?.stop())
  const { server, tenant } = useProgram()

  beforeAll(async () => {
    target = { path: join(createFolder(), 'socket') }
    nginx = await startNginx(server.url, `unix:${target.path}`)
    const request = { text: 'GET /livez HTTP/1.1\r\nHost: test\r\n\r\n' }
    await eventually(async () => statusesIn(await answersTo(target, request, 1)), [200], 20_000)
  })

  test.each([
    ['two pipelined requests', [201, 201]],
    ['a half-close after the request', [201]],
    ['a stray line break after the body', [201]],
    ['a stray line break before the request', [201]],
    ['a trailer', [201]],
    ['an unknown method', [502]],
    ['no host', [400]],
    ['headers that are too large', [400]],
    ['another version of HTTP', [505]],
  ])('%s gets %p, with a body', async (name, statuses) => {
    const sent = oddRequests(`/api/v1/prompts/${tenant.prompt}/signals`, `Authorization: Bearer ${tenant.key}`)[
      name
    ] as Sent
    const answer = await answersTo(target, sent, statuses.length)
    expect(statusesIn(answer)).toEqual(statuses)
    expect(answer.split('\r\n\r\n').slice(1).join('')).toMatch(/"data"|<html>/)
  })
})
