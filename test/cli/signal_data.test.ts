// Exports, purges and retentions on the command line, beside a running server.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDatabase, type TestDatabase } from '../harness.ts'
import { createOperator, type Operator, run, type Server, startServer } from '../program.ts'

let database: TestDatabase
let server: Server
let operator: Operator
let folder: string
let org: string
let key: string

beforeAll(async () => {
  database = await createDatabase()
  folder = await mkdtemp(join(tmpdir(), 'prompt-signals-export-'))
  operator = createOperator(database.settings)
  server = await startServer(database.settings)
  ;({ id: org } = await operator.one('orgs', 'create', '--name', 'Acme', '--plan', 'team'))
  ;({ key } = await operator.one('keys', 'create', '--org', org))
})

afterAll(async () => {
  expect(await server.stop()).toBe(0)
  await database.close()
  await rm(folder, { recursive: true })
})

/** A prompt with so many signals, and their ids. */
async function createPrompt(signals: number): Promise<{ prompt: string; ids: number[] }> {
  const { id: prompt } = await operator.one('prompts', 'create', '--org', org, '--name', 'Greeting')
  const response = await fetch(`${server.url}/api/v1/prompts/${prompt}/signals/batch`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      signals: Array.from({ length: signals }, (_, n) => ({ value: 'positive', metadata: { n } })),
    }),
  })
  const { data } = (await response.json()) as { data: { id: number }[] }
  return { prompt, ids: data.map(({ id }) => id) }
}

test('signals export writes lines to standard output, and a file that is there once it is whole', async () => {
  const { prompt, ids } = await createPrompt(3)
  const lines = (await operator.plain('signals', 'export', '--prompt', prompt)).split('\n')
  expect(lines.slice(0, -1).map((line) => JSON.parse(line).id)).toEqual(ids)
  const rest = await operator.plain(
    'signals',
    'export',
    '--prompt',
    prompt,
    '--after',
    String(ids[1]),
    '--format',
    'csv',
  )
  expect(rest).toMatch(new RegExp(`^${ids[2]},${prompt},positive,[^,]+,"{""n"": 2}"\r\n$`))
  const file = join(folder, 'signals.csv')
  expect(await operator.one('signals', 'export', '--prompt', prompt, '--format', 'csv', '--output', file)).toEqual({
    file,
    signals: 3,
  })
  expect((await Bun.file(file).text()).split('\r\n')).toHaveLength(5)
  expect(await readdir(folder)).toEqual(['signals.csv'])
})

test('signals export of an organisation has all its prompts', async () => {
  const { ids } = await createPrompt(2)
  const lines = (await operator.plain('signals', 'export', '--org', org)).split('\n').slice(0, -1)
  expect(lines.map((line) => JSON.parse(line).id)).toEqual(expect.arrayContaining(ids))
})

test.each([
  [['export'], 'give either --prompt or --org'],
  [['export', '--prompt', 'pmt_x', '--org', 'org_x'], 'give either --prompt or --org'],
  [['export', '--org', 'org_x', '--format', 'xml'], '--format must be ndjson or csv'],
  [['purge', '--before', 'yesterday'], '--before must be an ISO 8601 time'],
  [['purge', '--before', '2026-01-01', '--prompt', 'pmt_x', '--org', 'org_x'], 'give --prompt or --org'],
])('wrong usage is rejected before anything is opened: signals %p', async (args, message) => {
  const { status, stderr } = await run(['signals', ...args], { settings: database.settings })
  expect([status, stderr.includes(message)]).toEqual([2, true])
})

test('signals purge erases what is older, of a prompt or an organisation, and says how many', async () => {
  const { prompt } = await createPrompt(4)
  const later = new Date(Date.now() + 60_000).toISOString()
  expect(await operator.one('signals', 'purge', '--before', '2020-01-01', '--prompt', prompt)).toEqual({ erased: 0 })
  expect(await operator.one('signals', 'purge', '--before', later, '--prompt', prompt)).toEqual({ erased: 4 })
  expect(await operator.plain('signals', 'export', '--prompt', prompt)).toBe('')
  await createPrompt(2)
  const { erased } = await operator.one('signals', 'purge', '--before', later, '--org', org)
  expect(erased).toBeGreaterThanOrEqual(2)
  expect(await operator.plain('signals', 'export', '--org', org)).toBe('')
  expect(await operator.one('signals', 'purge', '--before', later)).toEqual({ erased: 0 })
})

test('orgs set-retention is shown by orgs list, and ended by none', async () => {
  expect(await operator.one('orgs', 'set-retention', org, '400')).toMatchObject({ id: org, retention_days: 400 })
  expect(await operator.one('orgs', 'set-retention', org, 'none')).toMatchObject({ id: org, retention_days: null })
  for (const days of ['0', '-1', '1.5', 'ever', '36501']) {
    const { status } = await run(['orgs', 'set-retention', org, days], { settings: database.settings })
    expect([days, status]).toEqual([days, 2])
  }
})
