// A Postgres whose synchronous standby is away does not confirm any commit.
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import postgres from 'postgres'
import { createClient } from '../client.ts'
import { createFolder, createTenant, eventually, PROGRAM, run, startServer } from '../program.ts'
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

test('a command that waits for an absent standby is ended by Ctrl-C', async () => {
  await awaitStandby('absent')
  const child = Bun.spawn([PROGRAM, 'orgs', 'create', '--name', 'A', '--plan', 'free'], {
    cwd: createFolder(),
    env: { PATH: process.env.PATH, ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const waiting = () => admin`select from pg_stat_activity where wait_event = 'SyncRep'`
  await eventually(async () => (await waiting()).length, 1)
  child.kill('SIGINT')
  expect(await child.exited).toBe(130)
  expect([await child.stdout.text(), await child.stderr.text()]).toEqual(['', 'prompt-signals: Interrupted.\n'])
})

test('a signal whose commit is not confirmed in time is a 503, and with its Idempotency-Key is recorded once', async () => {
  const { key, prompt } = await createTenant(settings)
  const service = await startServer(settings)
  const client = await createClient(service.url)
  const record = async (name: string) => {
    const path = `/prompts/${prompt}/signals`
    const { status, headers } = await client.post(path, key, { value: 'positive' }, { 'idempotency-key': name })
    return { status, isReplayed: headers.get('idempotent-replayed') }
  }
  await awaitStandby('absent')
  // Postgres takes a moment to heed the setting, and confirms commits until then.
  let attempts = 0
  await eventually(async () => (await record(`signal ${++attempts}`)).status, 503)
  await awaitStandby('')
  await eventually(() => record(`signal ${attempts}`), { status: 201, isReplayed: 'true' })
  expect((await client.get('/usage', key)).body.data.used).toBe(attempts)
  expect(await service.stop()).toBe(0)
})
