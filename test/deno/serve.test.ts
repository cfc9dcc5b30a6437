// The source as it is, on Deno: nothing but its platform file depends on Bun.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type Client, createClient } from '../client.ts'
import { createDatabase, redisPrefix, redisUrl, type TestDatabase } from '../harness.ts'
import { createFolder, createOperator, createTenant, type Operator, type Server, startServer } from '../program.ts'

const root = join(import.meta.dir, '../..')

let database: TestDatabase
let server: Server
let client: Client
let operator: Operator

/** The program itself, because the package's own starter would not pass a signal on. */
const [deno] = new Bun.Glob('@deno/*/deno').scanSync({ cwd: join(root, 'node_modules'), absolute: true })
const program = [deno as string, 'run', '--allow-all', '--no-remote', 'src/main.ts']

beforeAll(async () => {
  database = await createDatabase()
  operator = createOperator(database.settings)
  const more = { REDIS_URL: redisUrl(), REDIS_PREFIX: redisPrefix(), DENO_DIR: createFolder() }
  server = await startServer({ ...database.settings, ...more }, [], root, program)
  client = await createClient(server.url)
})

afterAll(() => database.close())

test('makes its own data directory on Deno', async () => {
  const settings = { DATA_DIR: join(createFolder(), 'data'), DENO_DIR: createFolder() }
  const fresh = await startServer(settings, [], root, program)
  expect((await fetch(`${fresh.url}/readyz`)).status).toBe(200)
  expect([await fresh.stop(), fresh.stderr()]).toEqual([0, ''])
})

test('serves, counts and ends on Deno as it does on Bun', async () => {
  const { key, prompt } = await createTenant(operator, 2)
  await operator.one(
    ...['history', 'record', '--prompt', prompt, '--action', 'deployed', '--commit-sha', 'c0ffee12'],
    ...['--user-name', 'Ada', '--user-email', 'ada@example.com', '--branch', 'main'],
  )
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
  expect([await server.stop(), server.stderr()]).toEqual([0, ''])
})
