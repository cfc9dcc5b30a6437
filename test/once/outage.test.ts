import { expect, test } from 'bun:test'
import type { Answer } from '../client.ts'
import { redisPrefix, redisUrl } from '../harness.ts'
import { eventually, run, startStopwatch } from '../program.ts'
import { urlOfDatabase, withAdmin } from '../templates.ts'
import { useProgram } from '../use.ts'

const { client, server, settings, tenant } = useProgram(() => ({ REDIS_URL: redisUrl(), REDIS_PREFIX: redisPrefix() }))

const name = () => new URL(settings.DATABASE_URL as string).pathname.slice(1)

/** To another database of the same server. */
const asAdmin = <T>(use: Parameters<typeof withAdmin<T>>[1]): Promise<T> =>
  withAdmin(urlOfDatabase(settings.DATABASE_URL as string, 'postgres'), use)

const failedIds: (string | null)[] = []

async function expectHonestFailure(send: () => Promise<Answer>): Promise<void> {
  const stop = startStopwatch()
  const { status, headers, body } = await send()
  expect(stop()).toBeLessThan(5_000)
  failedIds.push(headers.get('x-request-id'))
  expect({ status, body, retry: headers.get('retry-after') }).toEqual({
    status: 500,
    body: {
      error: {
        code: 'internal_error',
        message: 'The service could not complete the request. Try again shortly.',
        request_id: headers.get('x-request-id'),
      },
    },
    retry: '1',
  })
}

const requests = () => [
  () => client.getHistory(tenant.prompt, tenant.key),
  () => client.postSignal(tenant.prompt, tenant.key),
]

const readiness = async () => {
  const { status, body } = await client.call('GET', '/readyz')
  return [status, body.ready, body.database, body.redis]
}

test('a database that hangs: 500 within five seconds, not ready, and all is well once it goes on', async () => {
  const { promise: release, resolve: letGo } = Promise.withResolvers<void>()
  const locked = Promise.withResolvers<void>()
  const holder = withAdmin(settings.DATABASE_URL as string, (sql) =>
    sql.begin(async (on) => {
      await on`lock table prompts, signal_usage, api_keys, schema_migrations in access exclusive mode`
      locked.resolve()
      await release
    }),
  )
  await locked.promise
  await Promise.all([...requests().map(expectHonestFailure), eventually(readiness, [503, false, 'down', 'up'])])
  expect((await client.call('GET', '/livez')).status).toBe(200)
  letGo()
  await holder
  await eventually(readiness, [200, true, 'up', 'up'])
  await eventually(async () => (await client.postSignal(tenant.prompt, tenant.key)).status, 201)
})

test('a database that is gone: 500 within five seconds, not ready, and all is well once it is back', async () => {
  const away = `${name()}_away`
  await asAdmin(async (sql) => {
    await sql`alter database ${sql(name())} with allow_connections false`
    await sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name()}`
    await sql`alter database ${sql(name())} rename to ${sql(away)}`
  })
  await Promise.all([...requests().map(expectHonestFailure), eventually(readiness, [503, false, 'down', 'up'])])
  expect((await client.call('GET', '/livez')).status).toBe(200)
  const port = new URL(server.url).port
  const result = await run(['healthcheck', '--json'], { settings: { PORT: port } })
  expect(result).toEqual({
    status: 1,
    stdout: '{"ready":false}\n',
    stderr: `prompt-signals: The server at ${server.url} is not ready: {"ready":false,"database":"down","reason":"unreachable","redis":"up"}\n`,
  })

  await asAdmin(async (sql) => {
    await sql`alter database ${sql(away)} rename to ${sql(name())}`
    await sql`alter database ${sql(name())} with allow_connections true`
  })
  await eventually(readiness, [200, true, 'up', 'up'])
  for (const request of requests()) {
    await eventually(async () => (await request()).status < 500, true)
  }
})

test('the log has what failed with its request id, each loss and return of the database, and no secret', () => {
  const lines = server.log()
  const failures = lines.filter(({ msg, request_id: id }) => msg === 'request failed' && failedIds.includes(id))
  expect(failures.map(({ level }) => level)).toEqual([50, 50, 50, 50])
  const changes = lines.filter(({ dependency }) => dependency === 'database')
  expect(changes[0]).toMatchObject({ level: 40, msg: 'dependency down', reason: expect.any(String) })
  expect(changes.at(-1)).toMatchObject({ level: 30, msg: 'dependency up' })
  expect(server.stdout() + server.stderr()).not.toContain(tenant.key)
})
