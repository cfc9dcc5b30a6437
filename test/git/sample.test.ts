// The sample repository that docs/git.md shows, and the histories that sync makes of it.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { createDatabase, type TestDatabase } from '../harness.ts'
import { createFolder, createOperator, type Operator, type Row, run, type Server, startServer } from '../program.ts'

let database: TestDatabase
let server: Server
let operator: Operator
const sample = join(createFolder(), 'sample')
const clone = join(sample, 'clone')

beforeAll(async () => {
  database = await createDatabase()
  server = await startServer(database.settings)
  operator = createOperator(database.settings)
  const { exitCode, stderr } = Bun.spawnSync(['scripts/sample-repository.sh', sample])
  expect({ exitCode, stderr: stderr.toString() }).toEqual({ exitCode: 0, stderr: '' })
})

afterAll(async () => {
  await server.stop()
  await database.close()
})

const ada = 'Ada Lovelace <ada@example.com>'
const grace = 'Grace Hopper <grace@example.com>'

/** Oldest first, each as docs/git.md has it. */
const expected: Record<string, string[]> = {
  'prompts/welcome.md': [
    `2026-09-01T10:00 deployed 40c4331b ${ada}`,
    `2026-09-01T11:00 deployed 5ee91a81 ${grace}`,
    `2026-09-01T15:00 pr_merged f528b1a7 ${ada} https://github.com/acme/prompts/pull/1`,
    `2026-09-01T18:00 pr_merged 1ed31fc5 ${grace} https://github.com/acme/prompts/pull/2`,
    `2026-09-01T22:00 deployed a6e95b41 ${ada}`,
    `2026-09-01T23:00 deployed b2ff5062 ${ada}`,
  ],
  'prompts/farewell.md': [
    `2026-09-01T10:00 deployed 40c4331b ${ada}`,
    `2026-09-01T13:00 deployed f5316576 ${ada}`,
    `2026-09-01T18:00 pr_merged 1ed31fc5 ${grace} https://github.com/acme/prompts/pull/2`,
    `2026-09-01T21:00 deployed ddc47237 ${grace}`,
    `2026-09-02T03:00 deployed 8cca4558 ${grace}`,
  ],
  'prompts/refund.md': [`2026-09-02T01:00 deployed 35e4ae92 ${ada}`],
}

async function readHistories(org: string): Promise<Record<string, string[]>> {
  const prompts = await operator.json('prompts', 'list', '--org', org)
  const histories = prompts.map(async ({ id, path }) => {
    const entries = await operator.json('history', 'list', '--prompt', id, '--limit', '100')
    return [path, entries.reverse().map(describe)]
  })
  return Object.fromEntries(await Promise.all(histories))
}

const describe = ({ created_at, action, commit_sha, user, pr_url }: Row): string =>
  [
    created_at.slice(0, 16),
    action,
    commit_sha.slice(0, 8),
    `${user.name} <${user.email}>`,
    ...(pr_url ? [pr_url] : []),
  ].join(' ')

async function createOrganisation(): Promise<string> {
  const { id } = await operator.one('orgs', 'create', '--name', 'Acme', '--plan', 'team')
  return id
}

const create = ['--create', 'prompts/**/*.md']
const withoutIds = ({ prompt: _, ...change }: Row) => change

test('an empty service gets every prompt and its history, moves the link of a renamed file, and says so', async () => {
  const org = await createOrganisation()
  const file = ['--repository', 'Acme/Prompts', '--path', 'prompts/greeting.md']
  const { id } = await operator.one('prompts', 'create', '--org', org, '--name', 'greeting', ...file)
  const map = join(createFolder(), 'map.json')
  const tried = await operator.json('sync', clone, '--org', org, ...create, '--dry-run')
  expect(await readHistories(org)).toEqual({ 'prompts/greeting.md': [] })
  const changes = await operator.json('sync', clone, '--org', org, ...create, '--map', map)
  expect(tried.map(withoutIds)).toEqual(changes.map(withoutIds))
  expect(changes.slice(0, 3)).toEqual([
    { change: 'moved', prompt: id, path: 'prompts/welcome.md', from: 'prompts/greeting.md', problem: null },
    { change: 'created', prompt: expect.stringMatching(/^pmt_/), path: 'prompts/farewell.md', name: 'farewell' },
    { change: 'created', prompt: expect.stringMatching(/^pmt_/), path: 'prompts/refund.md', name: 'refund' },
  ])
  expect(changes.slice(3).every(({ change }) => change === 'added')).toBe(true)
  expect(await readHistories(org)).toEqual(expected)
  expect(await Bun.file(map).json()).toEqual({
    'prompts/welcome.md': id,
    'prompts/farewell.md': changes[1]?.prompt,
    'prompts/refund.md': changes[2]?.prompt,
  })
  expect(await operator.json('sync', clone, '--org', org, ...create)).toEqual([])
  expect(await readHistories(org)).toEqual(expected)
})

test('over REST it makes the same histories with a key that can write prompts, and repeats them with one for CI', async () => {
  const org = await createOrganisation()
  const { key: admin } = await operator.one('keys', 'create', '--org', org, '--preset', 'admin')
  const { key: ci } = await operator.one('keys', 'create', '--org', org, '--preset', 'ci')
  const sync = (key: string, ...more: string[]) =>
    run(['sync', clone, '--url', server.url, '--json', ...more], { settings: { PROMPT_SIGNALS_KEY: key } })
  const refused = await sync(ci, ...create)
  expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining('403') })
  const made = await sync(admin, ...create)
  expect(made).toMatchObject({ status: 0, stderr: expect.stringContaining('added 12 entries') })
  expect(await readHistories(org)).toEqual(expected)
  const repeated = await sync(ci)
  expect(repeated).toMatchObject({ status: 0, stdout: '' })
  expect(await readHistories(org)).toEqual(expected)
})

test('a key that may not change prompts records the history of a renamed file, and says that its link stays', async () => {
  const org = await createOrganisation()
  const file = ['--repository', 'acme/prompts', '--path', 'prompts/greeting.md']
  const { id } = await operator.one('prompts', 'create', '--org', org, '--name', 'greeting', ...file)
  const { key } = await operator.one('keys', 'create', '--org', org, '--preset', 'ci')
  const settings = { PROMPT_SIGNALS_KEY: key }
  const { status, stdout } = await run(['sync', clone, '--url', server.url, '--json'], { settings })
  expect({ status, moved: JSON.parse(stdout.split('\n')[0] as string) }).toEqual({
    status: 0,
    moved: {
      ...{ change: 'moved', prompt: id, path: 'prompts/welcome.md', from: 'prompts/greeting.md' },
      problem: expect.stringContaining('prompts:write'),
    },
  })
  expect(await readHistories(org)).toEqual({ 'prompts/greeting.md': expected['prompts/welcome.md'] as string[] })
})

test('the demonstration in docs/git.md is what the program shows', async () => {
  const org = await createOrganisation()
  const text = await Bun.file('docs/git.md').text()
  const [synced, listed] = [...text.matchAll(/```text\n([\s\S]*?)```/g)].map(([, block]) => block)
  const shown = await operator.plain('sync', clone, '--org', org, ...create)
  expect(shown.replace(/pmt_\w+/g, 'pmt_…')).toBe(synced as string)
  const [, , welcome] = [...shown.matchAll(/pmt_\w+/g)].map(String)
  const history = await operator.plain('history', 'list', '--prompt', welcome as string)
  const withAnyId = (table: string) => table.replace(/^\d+ +/gm, '# ').replace(/^id +/, 'id ')
  expect(withAnyId(history)).toBe(withAnyId(listed as string))
})
