import { beforeAll, expect, test } from 'bun:test'
import { PROGRAM } from '../program.ts'
import { useProgram } from '../use.ts'

const { client, operator, settings, tenant } = useProgram()

const org = 'Acme & Söhne'
const browser = ['keys', 'create', '--org', org, '--preset', 'browser', '--origin', 'https://example.com']
let id: string
let prompt: string
let shared: string

beforeAll(async () => {
  ;({ id: shared } = await operator.one('prompts', 'create', '--org', tenant.org, '--name', 'Shared'))
  ;({ id } = await operator.one('orgs', 'create', '--name', org, '--plan', 'free'))
  ;({ id: prompt } = await operator.one('prompts', 'create', '--org', org, '--name', 'only here'))
  await operator.one('prompts', 'create', '--org', id, '--name', 'Shared')
})

test('organisations and prompts are named by a unique name as well as by id', async () => {
  expect(await operator.json('prompts', 'list', '--org', org)).toEqual(
    await operator.json('prompts', 'list', '--org', id),
  )
  expect(await operator.one('orgs', 'set-plan', org, 'team')).toMatchObject({ id, plan: 'team' })
  const key = await operator.one(...browser, '--prompt', 'only here')
  expect(key).toMatchObject({ org: id, prompts: [prompt] })
  const update = ['keys', 'update', key.id, '--prompt']
  expect(await operator.one(...update, 'all')).toMatchObject({ prompts: null })
  const link = ['prompts', 'link', 'only here', '--repository', 'acme/prompts', '--path', 'a.md']
  expect(await operator.one(...link)).toMatchObject({ id: prompt })
  expect(await operator.plain('signals', 'export', '--prompt', 'only here')).toBe('')
  const purge = ['signals', 'purge', '--before', '2020-01-01', '--prompt', 'only here', '--yes']
  expect(await operator.one(...purge)).toEqual({ erased: 0 })
})

test('a name that several have needs an id, or the organisation that it is in', async () => {
  const line = `Several prompts are named Shared: use an id, such as ${shared}.`
  expect(await operator.errorLine('history', 'list', '--prompt', 'Shared')).toBe(line)
  expect(await operator.errorLine('history', 'list', '--prompt', 'only')).toBe(
    'There is no prompt only. "prompt-signals prompts list --org ORG" lists them.',
  )
  const { prompts } = await operator.one(...browser, '--prompt', 'Shared')
  expect(prompts).not.toEqual([shared])
})

test('lists fit 120 columns', async () => {
  const signal = { value: 'positive', metadata: { text: 'long '.repeat(100) } }
  expect((await client.postSignal(tenant.prompt, tenant.key, signal)).status).toBe(201)
  await operator.one('orgs', 'set-retention', id, '400')
  const { id: key } = await operator.one(...browser, '--name', 'n'.repeat(200), '--prompt', prompt)
  await operator.one('keys', 'revoke', key)
  for (const args of [
    ['orgs', 'list'],
    ['keys', 'list', '--org', id],
    ['prompts', 'list', '--org', id],
    ['audit', 'list', '--org', id],
    ['signals', 'list', '--prompt', tenant.prompt],
  ]) {
    const lines = (await operator.plain(...args)).split('\n')
    expect(lines.length).toBeGreaterThan(2)
    expect(lines.filter((line) => line.length > 120)).toEqual([])
  }
})

test('a reader that closes the pipe ends an export without a word', async () => {
  const lines = Array.from({ length: 1_000 }, () => ({ value: 'positive', metadata: { text: 'x'.repeat(500) } }))
  expect((await client.post(`/prompts/${tenant.prompt}/signals/batch`, tenant.key, { signals: lines })).status).toBe(
    200,
  )
  const script = '"$0" signals export --prompt "$1" | head -1; echo "$PIPESTATUS"'
  const shell = Bun.spawn(['bash', '-c', script, PROGRAM, tenant.prompt], {
    env: { PATH: process.env.PATH, ...settings },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [shown, errors] = await Promise.all([shell.stdout.text(), shell.stderr.text()])
  expect(errors).toBe('')
  expect(shown.split('\n').slice(1)).toEqual(['141', ''])
})
