import { expect, test } from 'bun:test'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { errorLineOf, run } from '../program.ts'
import { urlOfDatabase } from '../templates.ts'
import { useDatabase } from '../use.ts'

const database = useDatabase()

const commands = [['serve'], ['orgs', 'list'], ['migrate']]

async function expectRefused(url: string, reason: RegExp, chosen = commands): Promise<void> {
  const { host } = new URL(url)
  // The service also logs that it cannot reach the database; that line is tested with the logs.
  const settings = { DATABASE_URL: url, LOG_LEVEL: 'error', PGUSER: 'nobody' }
  const finished = await Promise.all(chosen.map((command) => run(command, { settings })))
  for (const one of finished) {
    const line = errorLineOf(one)
    expect(line).toStartWith(`The database at ${host} cannot be used: `)
    expect(line).toMatch(reason)
    expect(one.stderr).not.toContain('hunter2')
  }
}

async function listen(onConnection: (socket: Socket) => void) {
  const server = createServer(onConnection)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as { port: number }
  return { url: `postgres://user:hunter2@127.0.0.1:${port}/db`, close: () => server.close() }
}

test.concurrent('nothing listens there', async () => {
  const server = await listen(() => {})
  await once(server.close(), 'close')
  await expectRefused(server.url, /ECONNREFUSED/)
})

test.concurrent('no such host', async () => {
  await expectRefused('postgres://user:hunter2@none.invalid:5432/db', /none\.invalid/)
})

test.concurrent.each(commands.map((command) => ({ name: command.join(' '), command })))(
  'a server that takes the connection and says nothing is not waited for by $name any longer than five seconds',
  async ({ command }) => {
    let askedAt = 0
    const server = await listen(() => {
      askedAt ||= performance.now()
    })
    await expectRefused(server.url, /./, [command])
    // And a little, for the end of the process.
    expect(performance.now() - askedAt).toBeLessThan(7_500)
    server.close()
  },
)

test.concurrent('a proxy that takes the connection and drops it', async () => {
  const server = await listen((socket) => socket.destroy())
  await expectRefused(server.url, /./)
  server.close()
})

test.concurrent('no such database', async () => {
  const url = new URL(urlOfDatabase(database.settings.DATABASE_URL as string, 'none'))
  url.password = 'hunter2'
  await expectRefused(url.href, /database "none" does not exist/)
})

test.concurrent('no user in the URL', async () => {
  const url = new URL(database.settings.DATABASE_URL as string)
  url.username = ''
  await expectRefused(url.href, /role "nobody" does not exist\. Name a user in DATABASE_URL: postgres:/)
})

test.concurrent('no TLS on the server', async () => {
  const url = new URL(database.settings.DATABASE_URL as string)
  url.search = '?sslmode=require'
  await expectRefused(url.href, /turn TLS on there, or set sslmode=disable$/)
})
