// The source as it is, on Deno: nothing but its platform file depends on Bun.
import { beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { type Client, createClient } from '../client.ts'
import { createDatabaseWithTenant, redisPrefix, redisUrl } from '../harness.ts'
import {
  createFolder,
  createOperator,
  createTenant,
  eventually,
  type Operator,
  type Server,
  startServer,
} from '../program.ts'
import { closeAfterTest, useDatabase } from '../use.ts'
import { type Received, useReceiver } from '../webhooks/receiver.ts'

const database = useDatabase()
const receiver = useReceiver()
const root = join(import.meta.dir, '../..')

let server: Server
let client: Client
let operator: Operator

/** The program itself, because the package's own starter would not pass a signal on. */
const [deno] = new Bun.Glob('@deno/*/deno').scanSync({ cwd: join(root, 'node_modules'), absolute: true })
const program = [deno as string, 'run', '--allow-all', '--no-remote', 'src/main.ts']
const DENO_DIR = createFolder()

beforeAll(async () => {
  // Otherwise a server would compile while it waits for Postgres, and on a busy machine miss the answer.
  const compile = Bun.spawn([deno as string, 'cache', '--no-remote', 'src/main.ts'], {
    cwd: root,
    env: { ...process.env, DENO_DIR },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  expect(await compile.exited).toBe(0)
  const allowed = { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1' }
  operator = createOperator({ ...database.settings, ...allowed })
  const more = { ...allowed, REDIS_URL: redisUrl(), REDIS_PREFIX: redisPrefix(), DENO_DIR }
  server = await startServer({ ...database.settings, ...more }, [], root, program)
  client = await createClient(server.url)
})

test('makes its own data directory on Deno, and listens on an IPv6 address', async () => {
  const settings = { DATA_DIR: join(createFolder(), 'data'), HOST: '::1', DENO_DIR }
  const fresh = await startServer(settings, [], root, program)
  await eventually(async () => (await fetch(`${fresh.url}/readyz`, { method: 'HEAD' })).status, 200)
  expect([await fresh.stop(), fresh.stderr()]).toEqual([0, expect.stringContaining('creating an empty one')])
})

test('serves, counts and ends on Deno as it does on Bun', async () => {
  const { org, key, prompt } = await createTenant(database.settings, 2)
  const endpoint = await operator.one('endpoints', 'create', '--org', org, '--url', receiver.url)
  await operator.one(
    ...['history', 'record', '--prompt', prompt, '--action', 'deployed', '--commit-sha', 'c0ffee12'],
    ...['--user-name', 'Ada', '--user-email', 'ada@example.com', '--branch', 'main'],
  )
  await eventually(() => receiver.received.length, 1)
  const { body, headers } = receiver.received[0] as Received
  expect(new Webhook(endpoint.secret).verify(body, headers)).toMatchObject({ type: 'change.live' })
  const once = { key, headers: { 'idempotency-key': 'once' }, json: { value: 'positive', metadata: { session: 'a' } } }
  const answers = [
    await client.call('POST', `/api/v1/prompts/${prompt}/signals`, once),
    await client.call('POST', `/api/v1/prompts/${prompt}/signals`, once),
    await client.postSignal(prompt, key, { value: 'maybe' }),
    await client.postSignal(prompt, key),
    await client.postSignal(prompt, key),
    await client.postSignal('pmt_unknown', key),
    await client.postSignal(prompt, 'psk_wrong'),
    await client.getHistory(prompt, key),
  ]
  expect(answers.map(({ status }) => status)).toEqual([201, 201, 422, 201, 429, 404, 401, 200])
  expect(answers[1]?.body).toEqual(answers[0]?.body)
  expect(answers[7]?.body).toMatchObject({ data: [{ commit_sha: 'c0ffee12' }], pagination: { total_count: 1 } })
  expect((await fetch(`${server.url}/docs`)).status).toBe(200)
  const [, script] = /src="(console\/[^"]+)"/.exec(await (await fetch(server.url)).text()) ?? []
  expect((await fetch(`${server.url}/${script}`)).headers.get('cache-control')).toContain('immutable')
  expect([await server.stop(), server.stderr()]).toEqual([0, ''])
})

test('counts callers by the addresses that a trusted proxy names on Deno', async () => {
  const { tenant, ...own } = await closeAfterTest(createDatabaseWithTenant())
  const limits = { TRUSTED_PROXIES: '127.0.0.0/8', RATE_LIMIT_PER_ADDRESS: '2/h', RATE_LIMIT_PER_KEY: '3/h' }
  const limited = await startServer({ ...own.settings, ...limits, DENO_DIR }, [], root, program)
  const { key, prompt } = tenant
  const ask = async (forwarded?: string) => {
    const headers = { authorization: `Bearer ${key}`, ...(forwarded ? { 'x-forwarded-for': forwarded } : {}) }
    const response = await fetch(`${limited.url}/api/v1/prompts/${prompt}/history`, { headers })
    const { error } = (await response.json()) as { error?: { limited_by: string } }
    return error?.limited_by ?? response.status
  }
  const answers: unknown[] = []
  for (const address of ['192.0.2.1', '192.0.2.1', '192.0.2.1', undefined, undefined, '2001:db8::1'])
    answers.push(await ask(address))
  expect(answers).toEqual([200, 200, 'address_rate', 200, 'key_rate', 'key_rate'])
  expect([await limited.stop(), limited.stderr()]).toEqual([0, ''])
})
