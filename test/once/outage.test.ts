import { expect, test } from 'bun:test'
import type { Answer } from '../client.ts'
import { redisPrefix, redisUrl } from '../harness.ts'
import { eventually, run, startStopwatch, whileLocked } from '../program.ts'
import { withPostgres } from '../services.ts'
import { urlOfDatabase } from '../templates.ts'
import { useProgram } from '../use.ts'

const { client, operator, server, settings, tenant } = useProgram(() => ({
  REDIS_URL: redisUrl(),
  REDIS_PREFIX: redisPrefix(),
}))

const name = () => new URL(settings.DATABASE_URL as string).pathname.slice(1)

/** To another database of the same server. */
const asAdmin = <T>(use: Parameters<typeof withPostgres<T>>[1]): Promise<T> =>
  withPostgres(urlOfDatabase(settings.DATABASE_URL as string, 'postgres'), use)

const failedIds: (string | null)[] = []

async function expectHonestFailure(send: () => Promise<Answer>): Promise<void> {
  const stop = startStopwatch()
  const { status, headers, body } = await send()
  expect(stop()).toBeLessThan(5_000)
  failedIds.push(headers.get('x-request-id'))
  expect({ status, body, retry: headers.get('retry-after') }).toEqual({
    status: 503,
    body: {
      error: {
        code: 'unavailable',
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

/** Every operation of the OpenAPI document, with a key that was not used yet, and a delivery of GitHub. */
async function allOperations() {
  const { paths } = (await client.call('GET', '/docs/json')).body as { paths: Record<string, object> }
  const documented = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => [method.toUpperCase(), path.replace('{prompt_id}', tenant.prompt)] as const),
  )
  const all = [...documented, ['POST', `/webhooks/github/${tenant.org}`] as const]
  const { key = '' } = await operator.one('keys', 'create', '--org', tenant.org)
  const signature = { 'x-hub-signature-256': `sha256=${'0'.repeat(64)}` }
  return all.map(
    ([method, path]) =>
      () =>
        client.call(method, path, { key, headers: signature }),
  )
}

const readiness = async () => {
  const { status, body } = await client.call('GET', '/readyz')
  return [status, body.ready, body.database, body.redis]
}

test('a database that hangs: 503 within five seconds, not ready, and all is well once it goes on', async () => {
  const lock = 'lock table prompts, signal_usage, api_keys, schema_migrations in access exclusive mode'
  await whileLocked(settings, lock, async () => {
    await Promise.all([...requests().map(expectHonestFailure), eventually(readiness, [503, false, 'down', 'up'])])
    expect((await client.call('GET', '/livez')).status).toBe(200)
  })
  await eventually(readiness, [200, true, 'up', 'up'])
  await eventually(async () => (await client.postSignal(tenant.prompt, tenant.key)).status, 201)
})

test('a database that is gone: 503 of every operation within five seconds, not ready, and all is well once it is back', async () => {
  const operations = await allOperations()
  expect(operations.length).toBeGreaterThan(20)
  const away = `${name()}_away`
  await asAdmin(async (sql) => {
    await sql`alter database ${sql(name())} with allow_connections false`
    await sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name()}`
    await sql`alter database ${sql(name())} rename to ${sql(away)}`
  })
  await Promise.all([...operations.map(expectHonestFailure), eventually(readiness, [503, false, 'down', 'up'])])
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

test('the log has what failed with its request id, each loss and return of the database, and no secret', async () => {
  await eventually(() => server.log().findLast(({ dependency }) => dependency === 'database')?.msg, 'dependency up')
  const lines = server.log()
  const failures = lines.filter(({ msg, request_id: id }) => msg === 'request not served' && failedIds.includes(id))
  expect(failures.map(({ level }) => level)).toEqual(failedIds.map(() => 40))
  expect(lines.filter(({ level }) => level >= 50)).toEqual([])
  const changes = lines.filter(({ dependency }) => dependency === 'database')
  expect(changes[0]).toMatchObject({ level: 40, msg: 'dependency down', reason: expect.any(String) })
  expect(changes.at(-1)).toMatchObject({ level: 30, msg: 'dependency up' })
  expect(server.stdout() + server.stderr()).not.toContain(tenant.key)
})
