// The source as it is, on Deno, with another src/platform.ts: so nothing else in it depends on Bun.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Client, createClient } from '../client.ts'
import { createDatabase, redisPrefix, redisUrl, type TestDatabase } from '../harness.ts'
import { createFolder, createOperator, createTenant, type Operator, type Server, startServer } from '../program.ts'

const root = join(import.meta.dir, '../..')

let database: TestDatabase
let server: Server
let client: Client
let operator: Operator

/** The program itself: the package's own starter would not pass a signal on. */
const findDeno = () =>
  [...new Bun.Glob('@deno/*/deno').scanSync({ cwd: join(root, 'node_modules'), absolute: true })][0]

beforeAll(async () => {
  database = await createDatabase()
  operator = createOperator(database.settings)
  const folder = createFolder()
  const importMap = join(folder, 'import_map.json')
  const urlOf = (path: string) => pathToFileURL(join(root, path)).href
  writeFileSync(importMap, JSON.stringify({ imports: { [urlOf('src/platform.ts')]: urlOf('test/deno/platform.ts') } }))
  const settings = { ...database.settings, REDIS_URL: redisUrl(), REDIS_PREFIX: redisPrefix(), DENO_DIR: folder }
  const how = ['--allow-all', '--no-check', '--no-remote', '--node-modules-dir=manual', `--import-map=${importMap}`]
  server = await startServer(settings, [], root, [findDeno() as string, 'run', ...how, join(root, 'src/main.ts')])
  client = await createClient(server.url)
})

afterAll(() => database.close())

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
