// Bodies are held in memory until their signature is checked, so they are bounded by organisation and in total.
import { expect, test } from 'bun:test'
import { createEventLimiter } from '../../src/github/routes.ts'
import { eventually } from '../program.ts'
import { formatRequest, isWhole, openConnection, type RawConnection } from '../socket.ts'
import { useOwnService } from '../use.ts'
import { change, createHook, hookEachTest } from './hook.ts'
import { push } from './payloads.ts'

const { service, hook } = hookEachTest(useOwnService())

const mebibyte = 1024 * 1024
const chunk = Buffer.alloc(64 * 1024, 'x')
const deploy = () => push({ commits: [change] })

/** Begins a delivery with a false signature that never ends; what is sent of its body is as large as given. */
async function begin(headers: string[], bytes: number): Promise<RawConnection> {
  const connection = await openConnection(service.url)
  const { socket } = connection
  const signature = `X-Hub-Signature-256: sha256=${'0'.repeat(64)}`
  socket.write(formatRequest('POST', `/webhooks/github/${hook.tenant.org}`, [signature, ...headers]))
  let left = bytes
  const send = (): void => {
    while (left > 0) {
      const data = chunk.subarray(0, Math.min(left, chunk.length))
      left -= data.length
      if (!socket.write(data)) return void socket.once('drain', send)
    }
  }
  send()
  return connection
}

const beginMany = (count: number, ...what: Parameters<typeof begin>): Promise<RawConnection[]> =>
  Promise.all(Array.from({ length: count }, () => begin(...what)))

const isTurnedAway = ({ answer }: RawConnection) => answer().startsWith('HTTP/1.1 503') && isWhole(answer())

/** Ends the deliveries; then the organisation has its share again. */
async function end(senders: RawConnection[]): Promise<void> {
  for (const { socket } of senders) socket.destroy()
  await eventually(async () => (await hook.deliver('push', deploy())).status, 200)
}

test.each([
  ['20 of 24 MiB, announced', 20, [`Content-Length: ${24 * mebibyte}`], 24 * mebibyte - 1, 19],
  ['140 that announce ten bytes and send none', 140, ['Content-Length: 10'], 0, 12],
])('of %s, those past the share are rejected immediately', async (_, count, headers, bytes, turnedAway) => {
  const other = await createHook(service)
  const before = process.memoryUsage.rss()
  const senders = await beginMany(count, headers, bytes)
  await eventually(() => senders.filter(isTurnedAway).length, turnedAway, 30_000)
  const [head = '', body = ''] = senders.find(isTurnedAway)?.answer().split('\r\n\r\n') ?? []
  expect(head.toLowerCase()).toContain('\r\nretry-after: 1')
  const message = 'Too many events are in flight. Send this one again shortly.'
  expect(JSON.parse(body)).toEqual({ error: { code: 'unavailable', message, request_id: expect.any(String) } })
  const large = `${JSON.stringify(deploy())}${' '.repeat(8 * mebibyte)}`
  expect((await hook.deliver('push', {}, { body: large })).status).toBe(503)
  expect(await other.send('push', deploy())).toBe(1)
  expect(process.memoryUsage.rss() - before).toBeLessThan(400 * mebibyte)
  await end(senders)
})

test('all organisations together have a bound, and what one releases is free for the next', async () => {
  const limit = createEventLimiter()
  const last = Promise.withResolvers<void>()
  const hold = (organisationId: number) =>
    limit.run(organisationId, async (reserve) => {
      reserve(32 * mebibyte)
      await last.promise
    })
  const held = [1, 2, 3, 4].map(hold)
  await expect(hold(5)).rejects.toThrow('Too many events')
  last.resolve()
  await Promise.all(held)
  await hold(5)
})
