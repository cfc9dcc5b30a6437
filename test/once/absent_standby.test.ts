// A Postgres whose synchronous standby is away does not confirm any commit.
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import postgres from 'postgres'
import { createClient } from '../client.ts'
import { createFolder, createOperator, eventually, PROGRAM, run, startServer } from '../program.ts'
import { startPostgres } from '../services.ts'

let server: Awaited<ReturnType<typeof startPostgres>>
let admin: postgres.Sql
let settings: { DATABASE_URL: string }

beforeAll(async () => {
  server = await startPostgres()
  admin = postgres(server.url, { max: 1 })
  settings = { DATABASE_URL: server.url }
  expect((await run(['migrate'], { settings })).status).toBe(0)
})

beforeEach(() => awaitStandby(''))

afterAll(async () => {
  await admin.end({ timeout: 1 })
  await server.stop()
})

/** Makes commits wait for the standby of this name; for none if it is empty. */
async function awaitStandby(name: string): Promise<void> {
  await admin.unsafe(`alter system set synchronous_standby_names = '${name}'`)
  await admin`select pg_reload_conf()`
}

test('a command that waits for an absent standby says so, and on Ctrl-C what it does not know', async () => {
  await awaitStandby('absent')
  const child = Bun.spawn([PROGRAM, 'orgs', 'create', '--name', 'A', '--plan', 'free'], {
    cwd: createFolder(),
    env: { PATH: process.env.PATH, ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stderr = ''
  const read = (async () => {
    for await (const chunk of child.stderr) stderr += new TextDecoder().decode(chunk)
  })()
  const waiting = 'prompt-signals: Still waiting for the database to answer. Ctrl-C ends the waiting.\n'
  await eventually(() => stderr, waiting, 30_000)
  child.kill('SIGINT')
  expect(await child.exited).toBe(130)
  await read
  expect(stderr.slice(waiting.length)).toBe(
    'prompt-signals: Interrupted before the database had answered: the change may or may not have been made. ' +
      'To check, run: prompt-signals orgs list\n',
  )
  expect(await child.stdout.text()).toBe('')
})

test('a change whose commit is not confirmed in time is a 503, and with its Idempotency-Key is made once', async () => {
  const { one } = createOperator(settings)
  const { id: org } = await one('orgs', 'create', '--name', 'B', '--plan', 'free')
  const { key } = await one('keys', 'create', '--org', org as string, '--preset', 'admin')
  const service = await startServer(settings)
  const client = await createClient(service.url)
  const create = async (name: string) => {
    const { status, headers } = await client.post('/prompts', key, { name }, { 'idempotency-key': name })
    return { status, isReplayed: headers.get('idempotent-replayed') }
  }
  await awaitStandby('absent')
  // Postgres takes a moment to heed the setting, and confirms commits until then.
  let attempts = 0
  await eventually(async () => (await create(`prompt ${++attempts}`)).status, 503)
  await awaitStandby('')
  await eventually(() => create(`prompt ${attempts}`), { status: 201, isReplayed: 'true' })
  expect((await client.get('/prompts?limit=100', key)).body.data).toHaveLength(attempts)
  expect(await service.stop()).toBe(0)
})
