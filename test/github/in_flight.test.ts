// Bodies are held in memory until their signature is checked, so they are bounded by organisation and in total.
import { expect, test } from 'bun:test'
import { eventually } from '../program.ts'
import { postText } from '../signals/fixtures.ts'
import { formatRequest, isWhole, openConnection, type RawConnection } from '../socket.ts'
import { useOwnService } from '../use.ts'
import { change, createHook, hookEachTest } from './hook.ts'
import { push } from './payloads.ts'

const { service, hook } = hookEachTest(useOwnService())

const mebibyte = 1024 * 1024
/** The largest delivery. Six of them fit into the share of an organisation. */
const largest = 5 * mebibyte
const chunk = Buffer.alloc(64 * 1024, 'x')
const deploy = () => push({ commits: [change] })

/** Begins deliveries with a false signature that never end. Sends `bytes` of the length that each announces. */
const beginMany = (count: number, bytes: number, org = hook.tenant.org, length = largest) =>
  Promise.all(
    Array.from({ length: count }, async () => {
      const connection = await openConnection(service.url)
      const { socket } = connection
      const headers = [`X-Hub-Signature-256: sha256=${'0'.repeat(64)}`, `Content-Length: ${length}`]
      socket.write(formatRequest('POST', `/webhooks/github/${org}`, headers))
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
    }),
  )

const isTurnedAway = ({ answer }: RawConnection) => answer().startsWith('HTTP/1.1 503') && isWhole(answer())

/** Ends the deliveries; then there is room for all of a share again. */
async function end(senders: RawConnection[]): Promise<void> {
  for (const { socket } of senders) socket.destroy()
  const body = JSON.stringify(deploy()).padEnd(largest)
  const deliverSix = () =>
    Promise.all(Array.from({ length: 6 }, async () => (await hook.deliver('push', {}, { body })).status))
  await eventually(deliverSix, Array(6).fill(200))
}

test('of 20 of 5 MiB, those past the share are rejected immediately', async () => {
  const other = await createHook(service)
  const before = process.memoryUsage.rss()
  const senders = await beginMany(20, largest - 1)
  await eventually(() => senders.filter(isTurnedAway).length, 14, 30_000)
  const [head = '', body = ''] = senders.find(isTurnedAway)?.answer().split('\r\n\r\n') ?? []
  expect(head.toLowerCase()).toContain('\r\nretry-after: 1')
  const message = 'Too many large bodies are in flight. Try again shortly.'
  expect(JSON.parse(body)).toEqual({ error: { code: 'unavailable', message, request_id: expect.any(String) } })
  const large = JSON.stringify(deploy()).padEnd(3 * mebibyte)
  expect((await hook.deliver('push', {}, { body: large })).status).toBe(503)
  expect(await other.send('push', deploy())).toBe(1)
  expect(process.memoryUsage.rss() - before).toBeLessThan(400 * mebibyte)
  await end(senders)
})

test('deliveries, which anybody can begin, leave the keys of the organisation their share', async () => {
  const lengths = [...Array<number>(6).fill(largest), 1.5 * mebibyte]
  const begin = async (length: number) => (await beginMany(1, 1, hook.tenant.org, length))[0] as RawConnection
  const senders = await Promise.all(lengths.map(begin))
  const large = (text: string) => text.padEnd(mebibyte)
  const deliver = async () => {
    const { status } = await hook.deliver('push', {}, { body: large(JSON.stringify(deploy())) })
    // Those that came while this delivery was in flight may have found no room.
    for (const [at, length] of lengths.entries()) {
      if (isTurnedAway(senders[at] as RawConnection)) senders[at] = await begin(length)
    }
    return status
  }
  await eventually(deliver, 503)
  expect((await postText(service, hook.tenant, large('{"value":"positive"}'))).status).toBe(201)
  await end(senders)
})

test('all organisations together have a bound, and what one releases is free for the next', async () => {
  const hooks = await Promise.all(Array.from({ length: 5 }, () => createHook(service)))
  const senders = (await Promise.all(hooks.map(({ tenant }) => beginMany(6, 1, tenant.org)))).flat()
  await eventually(() => senders.filter(isTurnedAway).length, 5)
  await end(senders)
})
