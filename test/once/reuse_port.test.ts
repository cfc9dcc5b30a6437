import { afterAll, expect, test } from 'bun:test'
import { createDatabaseWithTenant } from '../harness.ts'
import { createOperator, eventually, type Server, startServer } from '../program.ts'
import { formatRequest, isWhole, openConnection } from '../socket.ts'

const database = await createDatabaseWithTenant()
const { prompt, key } = database.tenant
const servers: Server[] = []
afterAll(async () => {
  for (const server of servers) await server.kill()
  await database.close()
})

async function start(port = '0'): Promise<Server> {
  const settings = { REUSE_PORT: 'on', PORT: port, METRICS_ADDRESS: '127.0.0.1:0' }
  const server = await startServer({ ...database.settings, ...settings })
  servers.push(server)
  return server
}

/** The POSTs that this process itself has answered. */
async function countOf(server: Server): Promise<number> {
  const [{ metrics }] = server.log() as [{ metrics: string }]
  const text = await (await fetch(metrics)).text()
  return Number(/^prompt_signals_signals_total\{outcome="recorded"\} (\d+)$/m.exec(text)?.[1] ?? 0)
}

test('processes share a port, and a rolling restart of them loses no request', async () => {
  const first = await start()
  const { port } = new URL(first.url)
  const second = await start(port)
  const text = formatRequest(
    'POST',
    `/api/v1/prompts/${prompt}/signals`,
    [`Authorization: Bearer ${key}`, 'Content-Type: application/json'],
    '{"value":"positive"}',
  )
  let [isOver, recorded] = [false, 0]
  /** Sends five requests on each connection, or fewer when a response closes it. */
  const keepPosting = async () => {
    while (!isOver) {
      const { socket, answer, until } = await openConnection(first.url)
      for (let sent = 0, isClosing = false; sent < 5 && !isClosing; sent += 1) {
        const before = answer().length
        socket.write(text)
        await until((all) => isWhole(all.slice(before)))
        const response = answer().slice(before)
        expect(response).toStartWith('HTTP/1.1 201 ')
        recorded += 1
        isClosing = /^connection: close\r?$/im.test(response)
      }
      socket.destroy()
    }
  }
  const callers = Promise.all(Array.from({ length: 16 }, keepPosting))
  for (const server of [first, second]) {
    // Each of them has a part of the connections.
    await eventually(async () => (await countOf(server)) > 50, true)
    const successor = await start(port)
    expect(await server.stop()).toBe(0)
    await eventually(async () => (await countOf(successor)) > 50, true)
  }
  isOver = true
  await callers
  expect(await createOperator(database.settings).one('orgs', 'list')).toMatchObject({ used: recorded })
})
