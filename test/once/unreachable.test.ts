// A Postgres that cannot be used when a command begins.
import { expect, test } from 'bun:test'
import { createServer, type Server } from 'node:net'
import { createDatabase } from '../harness.ts'
import { errorLineOf, run } from '../program.ts'

const commands = [['serve'], ['orgs', 'list'], ['migrate']]

async function expectRefused(url: string, reason: RegExp, chosen = commands): Promise<void> {
  const { host } = new URL(url)
  // The service also logs that it cannot reach the database; that line is tested with the logs.
  const settings = { DATABASE_URL: url, LOG_LEVEL: 'error' }
  const finished = await Promise.all(chosen.map((command) => run(command, { settings })))
  for (const one of finished) {
    const line = errorLineOf(one)
    expect(line).toStartWith(`The database at ${host} cannot be used: `)
    expect(line).toMatch(reason)
    expect(one.stderr).not.toContain('hunter2')
  }
}

function listen(onConnection: Parameters<typeof createServer>[1]): Promise<Server & { port: number }> {
  const server = createServer(onConnection)
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address() as { port: number }
      resolve(Object.assign(server, { port: address.port }))
    })
  })
}

test.concurrent('nothing listens there', async () => {
  const server = await listen(() => {})
  await new Promise((resolve) => server.close(resolve))
  await expectRefused(`postgres://user:hunter2@127.0.0.1:${server.port}/db`, /ECONNREFUSED/)
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
    await expectRefused(`postgres://user:hunter2@127.0.0.1:${server.port}/db`, /./, [command])
    // And a little, for the end of the process.
    expect(performance.now() - askedAt).toBeLessThan(7_500)
    server.close()
  },
)

test.concurrent('a proxy that takes the connection and drops it', async () => {
  const server = await listen((socket) => socket.destroy())
  await expectRefused(`postgres://user:hunter2@127.0.0.1:${server.port}/db`, /./)
  server.close()
})

test.concurrent('no such database', async () => {
  const database = await createDatabase()
  const url = new URL(database.settings.DATABASE_URL as string)
  url.pathname = '/none'
  url.password = 'hunter2'
  await expectRefused(url.href, /database "none" does not exist/)
  await database.close()
})
