import { expect, test } from 'bun:test'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { errorLineOf, run } from '../program.ts'
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
  const server = createServer(onConnection).unref()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as { port: number }
  return { url: `postgres://user:hunter2@127.0.0.1:${port}/db`, close: () => server.close() }
}

/** The URL of the test's database with these parts changed. */
const changed = (parts: Partial<URL>) => () =>
  Object.assign(new URL(database.settings.DATABASE_URL as string), { password: 'hunter2', ...parts }).href

/** A server that closed again. */
async function nowhere(): Promise<string> {
  const server = await listen(() => {})
  await once(server.close(), 'close')
  return server.url
}

test.concurrent.each<[string, RegExp, () => string | Promise<string>]>([
  ['where nothing listens', /ECONNREFUSED/, nowhere],
  ['at a host that is not there', /none\.invalid/, () => 'postgres://user:hunter2@none.invalid:5432/db'],
  ['behind a proxy that drops connections', /./, async () => (await listen((socket) => socket.destroy())).url],
  ['that is not there', /database "none" does not exist/, changed({ pathname: '/none' })],
  [
    'without a user in the URL',
    /role "nobody" does not exist\. Name a user in DATABASE_URL: postgres:/,
    changed({ username: '', password: '' }),
  ],
  ['without TLS', /turn TLS on there, or set sslmode=disable$/, changed({ search: '?sslmode=require' })],
])('a database %s is refused', async (_, reason, url) => expectRefused(await url(), reason))

test.concurrent.each(commands.map((command) => [command.join(' '), command] as const))(
  'a server that takes the connection and says nothing is not waited for by %s any longer than five seconds',
  async (_, command) => {
    let askedAt = 0
    const server = await listen(() => {
      askedAt ||= performance.now()
    })
    await expectRefused(server.url, /./, [command])
    // And a little, for the end of the process.
    expect(performance.now() - askedAt).toBeLessThan(7_500)
  },
)
