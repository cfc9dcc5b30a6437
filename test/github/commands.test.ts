import { expect, test } from 'bun:test'
import { useProgram } from '../use.ts'
import { headersOf } from './hook.ts'
import { push, sha } from './payloads.ts'

const { server, client, operator, tenant } = useProgram()

const creation = () => ['prompts', 'create', '--org', tenant.org, '--name', 'Linked']
const place = (repository: string, path: string) => ['--repository', repository, '--path', path]

test('a prompt is linked when it is made or later, and the link can be changed', async () => {
  const made = await operator.one(...creation(), ...place('Acme/Prompts', './prompts/a.md'))
  const notSeen = { file_state: null, file_moved_to: null, live_branch: null, archived: false, last_entry_at: null }
  const common = { id: made.id, org: tenant.org, name: 'Linked', ...notSeen, created_at: made.created_at }
  expect(made).toEqual({ ...common, repository: 'acme/prompts', path: 'prompts/a.md' })
  const linked = { ...common, repository: 'acme/other', path: 'Prompts/B.md' }
  expect(await operator.one('prompts', 'link', made.id, ...place('acme/Other', '/Prompts/B.md'))).toEqual(linked)
  expect(await operator.one('prompts', 'link', made.id, ...place('acme/Other', 'Prompts/B.md'))).toEqual(linked)
  expect(await operator.json('prompts', 'list', '--org', tenant.org)).toContainEqual(linked)
  const line = await operator.errorLine('prompts', 'link', made.id, ...place('acme', 'B.md'))
  expect(line).toBe(
    'The link is not valid. --repository must be owner/name on github.com, or host/path on any other host',
  )
})

test('prompts update sets the live branch, and history remove takes an entry out', async () => {
  const { id } = await operator.one(...creation())
  const update = (...change: string[]) => operator.one('prompts', 'update', id, ...change)
  expect(await update('--live-branch', 'release', '--name', 'Live')).toMatchObject({
    live_branch: 'release',
    name: 'Live',
  })
  expect(await update('--live-branch', '')).toMatchObject({ live_branch: null, name: 'Live' })
  const user = ['--user-name', 'Ada', '--user-email', 'ada@example.com']
  const entry = ['--action', 'deployed', '--commit-sha', 'wrong', '--branch', 'main', ...user]
  const recorded = await operator.one('history', 'record', '--prompt', id, ...entry)
  const remove = ['history', 'remove', String(recorded.id), '--prompt', id]
  expect(await operator.one(...remove)).toEqual({ id: recorded.id })
  expect(await operator.json('history', 'list', '--prompt', id)).toEqual([])
  expect(await operator.errorLine(...remove)).toBe(`There is no history entry ${recorded.id} of this prompt.`)
})

test('webhooks github set shows a secret once, with which the binary takes deliveries', async () => {
  const { prompt, key, org } = tenant
  const replaced = await operator.one('webhooks', 'github', 'set', '--org', org)
  const webhook = await operator.one('webhooks', 'github', 'set', '--org', org)
  expect(webhook).toEqual({ org, path: `/webhooks/github/${org}`, secret: expect.stringMatching(/^[0-9A-Za-z]{43}$/) })
  expect(webhook.secret).not.toBe(replaced.secret)
  await operator.one('prompts', 'link', prompt, ...place('acme/prompts', 'prompts/binary.md'))

  const body = JSON.stringify(push({ after: sha('binary'), commits: [{ added: ['prompts/binary.md'] }] }))
  const deliver = async (secret: string) => {
    const headers = await headersOf('push', body, { secret })
    return (await client.call('POST', webhook.path, { body, headers })).status
  }
  expect(await deliver(replaced.secret)).toBe(401)
  expect(await deliver(webhook.secret)).toBe(200)
  const { data } = (await client.getHistory(prompt, key)).body
  expect(data).toMatchObject([{ action: 'deployed', commit_sha: sha('binary') }])
  expect(server.stdout() + server.stderr()).not.toContain(webhook.secret)
})
