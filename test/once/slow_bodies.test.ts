// What has arrived of a body is in memory until the request is answered, so that many slow senders must not add up.
import { afterEach, expect, test } from 'bun:test'
import { readJsonText } from '../../src/http/body.ts'
import { RequestContext } from '../../src/http/request_context.ts'
import { generateKey } from '../../src/keys/verify.ts'
import { sendSignal } from '../client.ts'
import { createTenant, eventually, peakMemoryOf } from '../program.ts'
import { exchange, formatRequest, formatSignal, openConnection, type RawConnection } from '../socket.ts'
import type { Tenant } from '../tenant.ts'
import { useProgram } from '../use.ts'

const { server, settings } = useProgram()

const MIB = 1024 * 1024
/** Within the time a body may take to arrive, and some. */
const ANSWER_MS = 20_000
/** Of more than 512 connections that the server has yet to accept, the kernel resets some. */
const MAX_UNACCEPTED = 400

let senders: RawConnection[] = []

afterEach(() => {
  for (const { socket } of senders) socket.destroy()
  senders = []
})

const announced = (bytes: number) => `Content-Length: ${bytes}`
const chunked = 'Transfer-Encoding: chunked'
/** An empty chunk is the last one. */
const asChunks = (...chunks: Buffer[]) =>
  Buffer.concat(chunks.flatMap((data) => [Buffer.from(`${data.length.toString(16)}\r\n`), data, Buffer.from('\r\n')]))

/** Begins signals on open connections, each with as much of its body as given. */
async function begin(requests: number, tenant: Tenant, length: string, sent: Buffer): Promise<RawConnection[]> {
  const begun: RawConnection[] = []
  for (let left = requests; left > 0; left -= MAX_UNACCEPTED) {
    // This one is answered after those before it were accepted.
    if (left < requests) await exchange(server.url, formatRequest('GET', '/livez', []))
    const more = Array.from({ length: Math.min(left, MAX_UNACCEPTED) }, () => openConnection(server.url))
    begun.push(...(await Promise.all(more)))
  }
  senders.push(...begun)
  for (const { socket } of begun) {
    socket.write(formatSignal(tenant, [length], ''))
    socket.write(sent)
  }
  return begun
}

const isAnswered = ({ answer }: RawConnection) => answer().endsWith('}}')
const count = (of: RawConnection[], status: number) =>
  of.filter((sender) => isAnswered(sender) && sender.answer().startsWith(`HTTP/1.1 ${status}`)).length

const post = async (tenant: Tenant, bytes: number): Promise<number> =>
  (await sendSignal(server.url, tenant, '{"value":"positive"}'.padEnd(bytes))).status

const space = Buffer.alloc(900_000, ' ')

test('of 300 slow bodies of an organisation those past its share are rejected, and nothing of them is kept', async () => {
  const [busy, calm] = [await createTenant(settings), await createTenant(settings)]
  // The runtime keeps what arrives while a key or a prompt is looked up, so the rest is sent after that.
  const slow = await begin(300, busy, announced(MIB), space.subarray(0, 1))
  await eventually(() => count(slow, 503), 268, ANSWER_MS)
  const before = peakMemoryOf(server)
  await Promise.all(slow.map(({ socket }) => new Promise((sent) => socket.write(space, sent))))
  const [head = '', body = ''] = slow.find(isAnswered)?.answer().split('\r\n\r\n') ?? []
  expect(head.toLowerCase()).toContain('\r\nretry-after: 1')
  expect(JSON.parse(body)).toEqual({
    error: {
      code: 'unavailable',
      message: 'Too many large bodies are in flight. Try again shortly.',
      request_id: expect.any(String),
    },
  })
  // What is large for one organisation is rejected; what is small, or another's, is not.
  expect([await post(busy, MIB), await post(busy, 20), await post(calm, MIB)]).toEqual([503, 201, 201])
  expect(peakMemoryOf(server) - before).toBeLessThan(100 * MIB)
  // A body that did not arrive in time gives its share back.
  await eventually(() => count(slow, 422), 32, ANSWER_MS)
  expect(await post(busy, MIB)).toBe(201)
})

test('bodies of no announced length are counted as they arrive, beyond what is small', async () => {
  const [busy, calm] = [await createTenant(settings), await createTenant(settings)]
  const slow = await begin(60, busy, chunked, asChunks(space))
  await eventually(() => count(slow, 503) >= 22, true, ANSWER_MS)
  const small = await begin(1, busy, chunked, asChunks(Buffer.from('{"value":"positive"}'), Buffer.alloc(0)))
  await eventually(() => count(small, 201), 1)
  expect(await post(calm, MIB)).toBe(201)
  // A caller who goes away gives its share back.
  for (const { socket } of slow) socket.destroy()
  await eventually(() => post(busy, MIB), 201)
})

test('all organisations together have a bound, and small bodies pass it', async () => {
  const tenants = await Promise.all(Array.from({ length: 5 }, () => createTenant(settings)))
  const [last, ...busy] = tenants as [Tenant, ...Tenant[]]
  const slow = (await Promise.all(busy.map((tenant) => begin(33, tenant, announced(MIB), space.subarray(0, 1))))).flat()
  await eventually(() => count(slow, 503), 4, ANSWER_MS)
  expect([await post(last, MIB), await post(last, 32 * 1024)]).toEqual([503, 201])
})

test('thousands of requests whose bodies are still arriving are answered together, each of them', async () => {
  const tenant = await createTenant(settings)
  // All of them wait for one look-up of the key.
  const slow = await begin(4_000, tenant, announced(2 * MIB), space.subarray(0, 1))
  await eventually(() => slow.every(isAnswered), true, ANSWER_MS)
  expect(server.stderr()).toBe('')
})

test('the bodies of requests with unknown keys are not kept', async () => {
  const before = peakMemoryOf(server)
  // A gigabyte in all.
  for (let round = 0; round < 12; round += 1) {
    const unknown = Array.from({ length: 100 }, () => ({ org: '', keyId: '', key: generateKey(), prompt: 'pmt_none' }))
    const sent = (await Promise.all(unknown.map((tenant) => begin(1, tenant, announced(space.length), space)))).flat()
    await eventually(() => count(sent, 401), sent.length, ANSWER_MS)
    for (const { socket } of sent) socket.destroy()
  }
  expect(peakMemoryOf(server) - before).toBeLessThan(400 * MIB)
})

test('what arrives after the answer takes up no share', async () => {
  const read = (settled: boolean) => {
    const headers = { 'content-type': 'application/json' }
    const request = new Request('http://localhost', { method: 'POST', headers, body: new Blob([space]).stream() })
    const context = new RequestContext(request)
    context.caller = { org: 'late' }
    context.settled = settled
    return readJsonText(context)
  }
  for (let n = 0; n < 40; n += 1) await expect(read(true)).rejects.toThrow('not valid')
  expect(await read(false)).toHaveLength(space.length)
})
