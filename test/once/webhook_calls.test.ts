// What follows from an attempt, and which addresses an attempt can reach.
import { expect, test } from 'bun:test'
import { createSocket } from 'node:dgram'
import { getServers, setServers } from 'node:dns'
import { createServer, type Socket } from 'node:net'
import { resolveName } from '../../src/platform.ts'
import { hostList } from '../../src/setting_types.ts'
import { decideOutcome } from '../../src/webhooks/deliver.ts'
import { isPublicAddress } from '../../src/webhooks/reachable.ts'
import { post } from '../../src/webhooks/send.ts'
import { useReceiver } from '../webhooks/receiver.ts'

const now = new Date('2026-11-14T12:00:00Z')
const replyOf = (code: number | null, retryAfter?: string) => ({ code, text: '', retryAfter })

const steps = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]

test('each retry waits its step, give or take 20 %, and the tenth attempt is the last', () => {
  const delays = (random: number) =>
    [...steps, null].map(
      (_, attempts) => decideOutcome(replyOf(503), { attempts, failingSince: null }, now, random).retryMs,
    )
  expect(delays(0.5)).toEqual([...steps.map((step) => step * 1_000), null])
  expect(delays(0)).toEqual([...steps.map((step) => step * 800), null])
  expect(delays(1)).toEqual([...steps.map((step) => step * 1_200), null])
})

test.each([
  ['200', 300],
  ['400', 400],
  ['100000', 600],
  ['Sat, 14 Nov 2026 12:06:40 GMT', 400],
  ['Sat, 14 Nov 2026 11:00:00 GMT', 300],
  ['soon', 300],
])('Retry-After: %s is honoured up to twice the step', (header, seconds) => {
  const { retryMs } = decideOutcome(replyOf(429, header), { attempts: 1, failingSince: now }, now, 0.5)
  expect(retryMs).toBe(seconds * 1_000)
})

const daysAgo = (days: number) => new Date(now.getTime() - days * 86_400_000)

test.each([
  [200, 3, daysAgo(9), 'delivered', null],
  [299, 0, null, 'delivered', null],
  [302, 0, null, 'pending', null],
  [410, 0, null, 'failed', 'gone'],
  [500, 9, daysAgo(3), 'failed', null],
  [null, 3, daysAgo(4.99), 'pending', null],
  [null, 3, daysAgo(5), 'pending', 'failing'],
  [null, 0, daysAgo(30), 'pending', null],
] as const)('answer %p after %p attempts, failing since %p: %s', (code, attempts, failingSince, status, reason) => {
  const outcome = decideOutcome(replyOf(code), { attempts, failingSince }, now, 0)
  expect([outcome.status, outcome.disabledReason]).toEqual([status, reason])
})

const special = [
  '0.0.0.0 10.1.2.3 100.64.0.1 127.0.0.1 169.254.169.254 172.31.255.255 192.0.0.192 192.168.1.1 198.19.0.1 203.0.113.9',
  '224.0.0.1 240.0.0.1 255.255.255.255 192.88.99.1 :: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:8.8.8.8 64:ff9b::8.8.8.8',
  '64:ff9b:1::1 100::1 2001::1 2001:db8::1 2002:7f00:1::1 3fff::1 fc00::1 fd00:ec2::254 fe80::1 fec0::1 ff02::1',
].flatMap((line) => line.split(' '))

test.each([...special, 'example.com', ''])('%p is not public', (address) => {
  expect(isPublicAddress(address)).toBe(false)
})

test.each(['1.1.1.1', '100.63.255.255', '172.32.0.1', '192.0.1.1', '223.255.255.255', '2606:4700::1111', '2a00::1'])(
  '%p is public',
  (address) => expect(isPublicAddress(address)).toBe(true),
)

const receiver = useReceiver()
const { port } = new URL(receiver.url)
const allow = (hosts: string) => hostList.parse(hosts, 'WEBHOOK_ALLOWED_HOSTS')
const limits = { timeoutMs: 10_000, stopped: new AbortController().signal, resolve: resolveName }

const call = (url: string, options: Partial<Parameters<typeof post>[1]> = {}) =>
  post({ url, headers: {}, body: '{}' }, { ...limits, ...options })

test.each([
  ...['127.0.0.1', '2130706433', '0177.0.0.1', '0x7f.1', '127.1', '[::ffff:127.0.0.1]', '[::1]', 'localhost'],
])('nothing is sent to https://%s', async (host) => {
  const before = receiver.received.length
  const { code, text } = await call(`https://${host}:${port}/`)
  expect([code, text]).toEqual([null, expect.stringContaining('not public')])
  expect(receiver.received).toHaveLength(before)
})

test('an allowed host is reached over http, and no other address or name of it', async () => {
  const loopback = { resolve: resolveTo('127.0.0.1') }
  const url = `http://chat.internal:${port}/`
  expect((await call(url, { ...loopback, allowedHosts: allow('chat.internal') })).code).toBe(204)
  expect((await call(url, { ...loopback, allowedHosts: allow('10.0.0.0/8, 127.0.0.0/8') })).code).toBe(204)
  expect(receiver.received.at(-1)?.headers.host).toBe(`chat.internal:${port}`)
  for (const hosts of ['internal', 'x.chat.internal', '10.0.0.0/8', '127.0.0.2']) {
    expect((await call(url, { ...loopback, allowedHosts: allow(hosts) })).code).toBeNull()
  }
  const withPassword = `http://user:secret@127.0.0.1:${port}/`
  const refused = await call(withPassword, { allowedHosts: allow('127.0.0.1') })
  expect(refused).toEqual({ code: null, text: 'The URL has a user name or password.', retryAfter: undefined })
})

/** Answers each look-up with the next list of addresses, the last one for ever. */
function resolveTo(...answers: string[]) {
  return async () => {
    const list = answers.length > 1 ? (answers.shift() as string) : (answers[0] as string)
    return list.split(' ').map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
  }
}

test('a name is resolved once per attempt, and only addresses that passed the check are connected to', async () => {
  const before = receiver.received.length
  const textOf = async (...answers: string[]) => {
    const options = { resolve: resolveTo(...answers), allowedHosts: allow('127.0.0.2') }
    return (await call(`http://rebind.test:${port}/`, options)).text
  }
  expect(await textOf('127.0.0.2', '127.0.0.1')).toContain('ECONNREFUSED')
  expect(await textOf('127.0.0.1 127.0.0.2')).toContain('ECONNREFUSED')
  expect(await textOf('127.0.0.1')).toContain('not public')
  expect(receiver.received).toHaveLength(before)
})

test('an unknown host is answered like a private one', async () => {
  const unknown = async () => {
    throw Object.assign(new Error('not found'), { code: 'ENOTFOUND' })
  }
  const answers = [unknown, resolveTo('10.0.0.1')].map((resolve) => call('https://wiki.internal/', { resolve }))
  const [first, second] = await Promise.all(answers)
  expect(first).toEqual(second as typeof first)
})

test('a name server that never answers delays no other name, and no file', async () => {
  const asked = new Set<string>()
  const silent = createSocket('udp4').on('message', (query) => asked.add(query.toString('latin1', 13, 14)))
  await new Promise<void>((bound) => silent.bind(0, '127.0.0.1', bound))
  const servers = getServers()
  setServers([`127.0.0.1:${silent.address().port}`])
  const names = [...'abcdefgh'].map((letter) => `https://${letter}.example:${port}/`)
  const attempts = names.map((url) => call(url, { timeoutMs: 1_000 }))
  expect((await call(`http://localhost:${port}/`, { allowedHosts: allow('localhost') })).code).toBe(204)
  await Bun.file(import.meta.path).text()
  for (const { text } of await Promise.all(attempts)) expect(text).toBe('No answer within 1 s.')
  expect([...asked].sort().join('')).toBe('abcdefgh')
  setServers(servers)
  silent.close()
})

test('a redirect is an answer, and not followed', async () => {
  const allowedHosts = allow('127.0.0.1')
  for (const location of ['http://169.254.169.254/latest/meta-data', `${receiver.url}/elsewhere`]) {
    receiver.answer = () => new Response(null, { status: 302, headers: { location } })
    expect((await call(receiver.url, { allowedHosts })).code).toBe(302)
  }
  expect(receiver.received.map(({ path }) => path)).not.toContain('/elsewhere')
})

const head = 'HTTP/1.1 200 OK\r\nretry-after: 7\r\n'

test.each([
  ['an answer', `${head}content-length: 5\r\n\r\na\0bcd`, 200, 'abcd'],
  [
    'an answer that never ends',
    `${head}transfer-encoding: chunked\r\n\r\n4000\r\n${'é'.repeat(0x2000)}`,
    200,
    'é'.repeat(1_000),
  ],
  ['a body that hangs', `${head}content-length: 9\r\n\r\nabc`, 200, 'abc'],
  ['nothing', '', null, 'No answer within 0.3 s.'],
  ['half a head', 'HTTP/1.1 200 OK\r\n', null, 'No answer within 0.3 s.'],
  ['another protocol', 'SSH-2.0-OpenSSH\r\n', null, 'No answer: HPE_INVALID_CONSTANT.'],
  [
    'a switch of protocols',
    'HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
    null,
    'No answer: connection closed.',
  ],
  ['endless headers', head + `a: ${'x'.repeat(1_000)}\r\n`.repeat(200), null, 'No answer: HPE_HEADER_OVERFLOW.'],
  ['interim answers', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(100_000), null, 'No answer within 65536 bytes.'],
  ['blank lines', '\r\n'.repeat(1_000_000), null, 'No answer within 65536 bytes.'],
  [
    'a byte per large chunk',
    `${head}transfer-encoding: chunked\r\n\r\n${`1;${'x'.repeat(15_000)}\r\na\r\n`.repeat(1_000)}`,
    200,
    expect.stringMatching(/^a{1,500}$/),
  ],
  ['a reset', null, null, 'No answer: ECONNRESET.'],
])('an attempt ends in time with %s', async (_, sent, code, text) => {
  const server = createServer((socket: Socket) => {
    socket.on('error', () => {})
    socket.once('data', () => (sent === null ? socket.resetAndDestroy() : socket.write(sent)))
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as { port: number }
  const options = { allowedHosts: allow('127.0.0.1'), timeoutMs: 300 }
  expect(await call(`http://127.0.0.1:${port}/`, options)).toMatchObject({ code, text })
  server.close()
})
