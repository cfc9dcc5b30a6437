import { expect, test } from 'bun:test'
import { createServer, type Socket } from 'node:net'
import { openClient } from '../../src/db/client.ts'
import type { Tls } from '../../src/db/tls.ts'

function message(type: string, ...parts: (number | string)[]): Buffer {
  const body = Buffer.concat(
    parts.map((part) => {
      if (typeof part === 'string') return Buffer.from(part)
      const bytes = Buffer.alloc(4)
      bytes.writeInt32BE(part)
      return bytes
    }),
  )
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

test.each([
  ['continues an authentication that was not begun', message('R', 11, 'nonsense')],
  ['requests an unknown way to authenticate', message('R', 99)],
  ['ends an authentication that was not begun', message('R', 12, 'v=none')],
  ['sends a row without a query', Buffer.concat([message('R', 0), message('D', 'xx'), message('Z', 'I')])],
  ['sends what is no message', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')],
  ['accepts TLS and then speaks none', Buffer.from('S nonsense')],
])('a server that %s fails the statement, and nothing else', async (_, bytes) => {
  const ssl = bytes[0] === 0x53 ? { rejectUnauthorized: true } : false
  await expectFailure(ssl, (guest) => guest.end(bytes))
})

test('an authority that is no certificate fails the statement, and nothing else', async () => {
  await expectFailure({ rejectUnauthorized: true, ca: 'no certificate' }, (guest) => guest.write('S'))
})

/** Expects a statement to fail on a server that replies in this way to the first bytes of each connection. */
async function expectFailure(ssl: Tls, reply: (guest: Socket) => void): Promise<void> {
  const server = createServer((guest) => {
    guest.on('error', () => {})
    guest.once('data', () => reply(guest))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `postgres://user:word@127.0.0.1:${(server.address() as { port: number }).port}/db`
  const odd = openClient({ url, ssl }, { queryTimeoutMs: 300, maxConnections: 1 })
  const outcome = odd.sql`select 1`.then(
    () => 'answered',
    () => 'failed',
  )
  expect(await outcome).toBe('failed')
  await odd.close()
  server.close()
}
