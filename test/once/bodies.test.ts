import { beforeAll, expect, test } from 'bun:test'
import { createHmac, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { gzipSync } from 'node:zlib'
import { peakMemoryOf } from '../program.ts'
import { formatSignal, isWhole, openConnection } from '../socket.ts'
import { useProgram } from '../use.ts'

const { operator, server, tenant } = useProgram()

const MIB = 1024 * 1024

let slow: Promise<string>

// Begun here, because it takes the ten seconds that a body may take.
beforeAll(() => {
  slow = answerTo(`${head('Content-Length: 20')}{"value":`)
})

const head = (...headers: string[]): string => formatSignal(tenant, headers, '')

/** Sends the text, and then blocks until there is a response, which it returns; `''` for a closed connection. */
async function answerTo(
  start: string | Buffer,
  more: { block: string; bytes: number } = { block: '', bytes: 0 },
): Promise<string> {
  const { socket, until, isClosed } = await openConnection(server.url)
  const closed = until(() => false)
  socket.write(start)
  for (let sent = 0; sent < more.bytes && !isClosed(); sent += more.block.length) {
    if (!socket.write(more.block)) await Promise.race([once(socket, 'drain'), closed])
  }
  const answer = await until(isWhole)
  socket.destroy()
  return answer
}

function read(answer: string): { status: number; code: string; details: object[] } {
  const [start = '', body = ''] = answer.split('\r\n\r\n')
  const { code, details, request_id } = JSON.parse(body).error
  expect(start).toContain(`x-request-id: ${request_id}`)
  return { status: Number(start.split(' ')[1]), code, details }
}

const used = async () => (await operator.json('orgs', 'list'))[0]?.used as number

const invalid = (message: string) => ({ status: 422, code: 'validation_error', details: [{ path: '', message }] })
const tooLarge = invalid('must be at most 1 MiB')

test('keeps nothing of a body above the cap, announced or chunked, with a good key or a bad one', async () => {
  const before = peakMemoryOf(server)
  const block = 'x'.repeat(MIB)
  const chunk = `${MIB.toString(16)}\r\n${block}\r\n`
  const announced = head(`Content-Length: ${10 * 1024 * MIB}`)
  const chunked = head('Transfer-Encoding: chunked')
  const stranger = (text: string) => text.replace(tenant.key, 'psk_wrong')
  const bytes = 200 * MIB
  // It does not wait for what is announced.
  expect(read(await answerTo(announced))).toEqual(tooLarge)
  expect(read(await answerTo(announced, { block, bytes }))).toEqual(tooLarge)
  expect(read(await answerTo(chunked, { block: chunk, bytes }))).toEqual(tooLarge)
  expect(read(await answerTo(stranger(announced), { block, bytes })).status).toBe(401)
  expect(read(await answerTo(stranger(chunked), { block: chunk, bytes })).status).toBe(401)
  expect(peakMemoryOf(server) - before).toBeLessThan(100 * MIB)
})

const signalOf = (bytes: number) => '{"value":"positive"}'.padEnd(bytes)
const announced = (bytes: number) => head(`Content-Length: ${bytes}`) + signalOf(bytes)
const chunked = (bytes: number) =>
  `${head('Transfer-Encoding: chunked')}${bytes.toString(16)}\r\n${signalOf(bytes)}\r\n0\r\n\r\n`
const compressed = (size: number) => {
  const bytes = gzipSync(signalOf(size))
  return Buffer.concat([Buffer.from(head('Content-Encoding: gzip', `Content-Length: ${bytes.length}`)), bytes])
}

test.each([
  ['an announced', announced],
  ['a twice announced', (bytes: number) => announced(bytes).replace(/Content-Length.*\r\n/, '$&$&')],
  ['a chunked', chunked],
  ['a gzipped', compressed],
])('takes %s body of exactly the cap, and not one byte more', async (_, write) => {
  expect(await answerTo(write(20))).toStartWith('HTTP/1.1 201')
  expect(await answerTo(write(MIB))).toStartWith('HTTP/1.1 201')
  expect(read(await answerTo(write(MIB + 1)))).toEqual(tooLarge)
})

test('stops decompressing at the cap', async () => {
  const before = peakMemoryOf(server)
  expect(read(await answerTo(compressed(500 * MIB)))).toEqual(tooLarge)
  expect(peakMemoryOf(server) - before).toBeLessThan(50 * MIB)
})

test('a gzipped body of more than 1 MiB is at most 300 times as long as what was sent', async () => {
  const send = async (signals: string) => {
    const bytes = gzipSync(`{"signals":[{"value":"positive","metadata":{"text":"${signals}"}}]}`.padEnd(2 * MIB))
    const path = head('Content-Encoding: gzip', `Content-Length: ${bytes.length}`).replace(
      '/signals ',
      '/signals/batch ',
    )
    return answerTo(Buffer.concat([Buffer.from(path), bytes]))
  }
  expect(read(await send(''))).toEqual(tooLarge)
  expect(await send(randomBytes(8_000).toString('hex').slice(0, 16_000))).toStartWith('HTTP/1.1 200')
})

test('a delivery of GitHub takes little memory, however many parameters or lists it has', async () => {
  const [webhook] = await operator.json('webhooks', 'github', 'set', '--org', tenant.org)
  const { path, secret } = webhook as { path: string; secret: string }
  const deliver = async (type: string, body: string) => {
    const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
    const headers = { 'content-type': type, 'x-github-event': 'ping', 'x-hub-signature-256': signature }
    return (await fetch(server.url + path, { method: 'POST', headers, body })).status
  }
  const before = peakMemoryOf(server)
  const form = 'application/x-www-form-urlencoded'
  expect(await deliver(form, `b=1&payload=${encodeURIComponent('{"zen":"a + b & c"}')}`)).toBe(200)
  expect(await deliver(form, `payload=%7B%7D${'&a'.repeat(2_500_000)}`)).toBe(200)
  expect(await deliver('application/json', `[${'[],'.repeat(1_600_000)}[]]`)).toBe(422)
  expect(peakMemoryOf(server) - before).toBeLessThan(300 * MIB)
})

test.each([
  ['gzip', 'must be valid gzip'],
  ['br', 'must be uncompressed, or sent with "Content-Encoding: gzip"'],
  ['gzip, gzip', 'must be uncompressed, or sent with "Content-Encoding: gzip"'],
])('rejects the encoding %p of a plain body', async (encoding, message) => {
  const sent = head(`Content-Encoding: ${encoding}`, 'Content-Length: 20') + signalOf(20)
  expect(read(await answerTo(sent))).toEqual(invalid(message))
})

test.each(['[bad', '', ' ', 'a/b?x', 'http://', '%'])('a Host of %p changes no answer', async (host) => {
  const send = async (path: string) => (await answerTo(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`)).slice(0, 12)
  expect(await Promise.all(['/docs', '/docs/', '/nothing', '/api/v1/nothing'].map(send))).toEqual(
    [200, 200, 404, 401].map((status) => `HTTP/1.1 ${status}`),
  )
})

test('a request with two lengths is rejected, and its body is not another request', async () => {
  const before = await used()
  const answer = await answerTo(`${head('Content-Length: 5', 'Transfer-Encoding: chunked')}0\r\n\r\n${announced(20)}`)
  expect(answer.match(/HTTP\/1\.1 \d+/g) ?? []).not.toContain('HTTP/1.1 201')
  expect(await used()).toBe(before)
})

test('a request cut off in the middle records nothing and affects no other', async () => {
  const before = await used()
  const whole = announced(20)
  for (const length of [10, 100, whole.length - 15, whole.length - 1]) {
    const { socket } = await openConnection(server.url)
    socket.write(whole.slice(0, length))
    socket.destroy()
  }
  expect(await answerTo(whole)).toStartWith('HTTP/1.1 201')
  expect(await used()).toBe(before + 1)
})

test('a body that does not arrive within ten seconds is rejected, and slows no other until then', async () => {
  expect(read(await slow)).toEqual(invalid('must arrive within 10 seconds'))
})
