import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { openClient } from '../../src/db/client.ts'
import { readTls } from '../../src/db/tls.ts'
import { createDatabase, type TestDatabase } from '../harness.ts'

let database: TestDatabase
let proxy: Server
let url: string
/** Of what Postgres sends from now on, so many bytes pass before the connection breaks; -1 for all. */
let bytesLeft = -1

beforeAll(async () => {
  database = await createDatabase()
  const target = new URL(database.settings.DATABASE_URL as string)
  const [targetPort, targetHost] = [Number(target.port), target.hostname]
  proxy = createServer((client) => {
    const server = connect(targetPort, targetHost)
    const end = (socket: Socket) => () => socket.destroy()
    client.on('error', end(server)).on('close', end(server))
    server.on('error', end(client)).on('close', end(client))
    client.pipe(server)
    server.on('data', (bytes: Buffer) => {
      if (bytesLeft === -1) return void client.write(bytes)
      client.end(bytes.subarray(0, bytesLeft))
      bytesLeft = -1
    })
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  target.hostname = '127.0.0.1'
  target.port = String((proxy.address() as { port: number }).port)
  url = target.href
})

afterAll(async () => {
  proxy.close()
  await database.close()
})

test('nothing of a broken answer reaches the next query', async () => {
  const db = openClient(readTls(url), { queryTimeoutMs: 4_500, maxConnections: 1 })
  for (const cut of [200, 400, 800, 1_600]) {
    await db.sql`select 1`
    bytesLeft = cut
    const broken = await db.sql`select g as stale from generate_series(1, 1000) g`.catch(() => 'broken')
    expect(broken).toBe('broken')
    // Several, since the first may still meet the broken connection.
    const answers = await Promise.all(
      Array.from({ length: 5 }, (_, index) => db.sql<{ n: number }>`select ${index}::int as n`.catch(() => 'failed')),
    )
    for (const [index, answer] of answers.entries()) if (answer !== 'failed') expect(answer).toEqual([{ n: index }])
    expect(await db.sql<{ n: number }>`select 7 as n`).toEqual([{ n: 7 }])
  }
  await db.close()
})
