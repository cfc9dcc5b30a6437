import { afterAll, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { createDatabaseWithTenant } from '../harness.ts'
import { createOperator, eventually, type Server, startServer } from '../program.ts'
import { formatSignal, isWhole, openConnection } from '../socket.ts'

/** Gives the connections that a closed listener has not accepted to another one. Only root can set it. */
const migration = '/proc/sys/net/ipv4/tcp_migrate_req'
const before = readFileSync(migration)
try {
  writeFileSync(migration, '1')
} catch {}
const isMigrating = readFileSync(migration, 'utf8').trim() === '1'

const database = await createDatabaseWithTenant()
const servers: Server[] = []
afterAll(async () => {
  for (const server of servers) await server.kill()
  await database.close()
  if (isMigrating) writeFileSync(migration, before)
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
  const text = formatSignal(database.tenant)
  let [isOver, recorded] = [false, 0]
  /** Sends five requests on each connection, or fewer when a response closes it. */
  const keepPosting = async () => {
    while (!isOver) {
      const { socket, answer, until } = await openConnection(first.url)
      for (let sent = 0, isClosing = false; sent < 5 && !isClosing; sent += 1) {
        const known = answer().length
        socket.write(text)
        await until((all) => isWhole(all.slice(known)))
        const response = answer().slice(known)
        // Never accepted, so nothing was recorded.
        if (response === '' && sent === 0 && !isMigrating) break
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
