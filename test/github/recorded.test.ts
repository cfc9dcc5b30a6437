// Deliveries that GitHub has really sent, as @octokit/webhooks-examples has recorded them.
import { expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import recorded from '@octokit/webhooks-examples/api.github.com/index.json'
import { createPrompt, listAllPrompts } from '../../src/prompts/manage.ts'
import { hookEachTest } from './hook.ts'

// biome-ignore lint/suspicious/noExplicitAny: payloads of every shape
type Payload = any

const { service, hook } = hookEachTest()

const examplesOf = (name: string): Payload[] =>
  (recorded as unknown as { name: string; examples: Payload[] }[]).find((event) => event.name === name)?.examples ?? []
const example = (name: string, fits: (payload: Payload) => boolean): Payload =>
  structuredClone(examplesOf(name).find(fits))

const link = async (repository: string, path = 'README.md') => {
  const { db, clock } = service.services
  const prompt = { org: hook.tenant.org, name: path, id: null, file: { repository, path } }
  return (await createPrompt(db, clock, prompt)).id
}

async function historyOf(prompt: string): Promise<object[]> {
  const { body } = await service.getHistory(prompt, hook.tenant.key)
  return body.data.map(({ id, ...entry }: Record<string, unknown>) => entry).reverse()
}

const linkOf = async (prompt: string) =>
  (await listAllPrompts(service.services.db, hook.tenant.org)).find(({ id }) => id === prompt)?.repository

const all = (recorded as unknown as { name: string; examples: Payload[] }[]).flatMap(({ name, examples }) =>
  examples.map((payload) => [name, payload.action ?? '', payload] as const),
)

test('every recorded delivery of every event is acknowledged', async () => {
  await link('Codertocat/Hello-World')
  await link('Octocoders/Hello-World')
  const rejected: unknown[] = []
  for (const [name, action, payload] of all) {
    const { status, text } = await hook.deliver(name, payload)
    if (status !== 200) rejected.push([name, action, status, text])
  }
  expect(rejected).toEqual([])
  expect(all.length).toBeGreaterThan(100)
})

const firstPush = () => example('push', ({ created, ref }) => created && ref === 'refs/heads/master')
const person = { name: 'Codertocat', email: '21031067+Codertocat@users.noreply.github.com' }
const deployed = {
  action: 'deployed',
  user: person,
  commit_sha: '6113728f27ae82c7b1a177c8d03f9e96e0adf246',
  pr_number: null,
  pr_url: null,
  branch_name: 'master',
  created_at: '2019-05-15T15:20:57.000Z',
}

test('the first push of a repository deploys its file, at the time of the push', async () => {
  const prompt = await link('Codertocat/Hello-World')
  expect(await hook.send('push', firstPush())).toBe(1)
  expect(await historyOf(prompt)).toEqual([deployed])
})

test.each(
  examplesOf('push')
    .filter(({ ref }) => ref.startsWith('refs/tags/'))
    .map((payload) => [payload]),
)('a tag that is made or deleted deploys nothing: %#', async (payload) => {
  const prompt = await link('Codertocat/Hello-World')
  const { body } = await hook.deliver('push', payload)
  expect(body.data.outcome).toMatch(/^(ignored|unlinked_repository)$/)
  expect(await historyOf(prompt)).toEqual([])
})

test('a pull request is opened, closed, reopened and closed again', async () => {
  const prompt = await link('Codertocat/Hello-World')
  const branch = {
    ref: 'refs/heads/changes',
    before: '0'.repeat(40),
    after: 'ec26c3e57ca3a959ca5aad62de7213c562f8c821',
  }
  const { repository, commits, ...push } = firstPush()
  const pushedAt = Date.parse('2019-05-15T15:20:30Z') / 1_000
  const own = [{ ...commits[0], id: branch.after, added: [], modified: ['README.md'] }]
  await hook.send('push', { ...push, ...branch, commits: own, repository: { ...repository, pushed_at: pushedAt } })

  const event = (action: string) => example('pull_request', (payload) => payload.action === action)
  await hook.send('pull_request', event('opened'))
  await hook.send('pull_request', event('closed'))
  await hook.send('pull_request', event('reopened'))
  const again = event('closed')
  again.pull_request.closed_at = '2019-05-15T16:00:00Z'
  await hook.send('pull_request', again)

  const pull = {
    user: person,
    commit_sha: branch.after,
    pr_number: 2,
    pr_url: 'https://github.com/Codertocat/Hello-World/pull/2',
    branch_name: 'changes',
  }
  expect(await historyOf(prompt)).toEqual([
    { action: 'pr_opened', ...pull, created_at: '2019-05-15T15:20:33.000Z' },
    { action: 'pr_closed', ...pull, created_at: '2019-05-15T15:21:18.000Z' },
    { action: 'pr_closed', ...pull, created_at: '2019-05-15T16:00:00.000Z' },
  ])
})

test('a push of the same repository under another name follows it, without any other event', async () => {
  const prompt = await link('Codertocat/Hello-World')
  await hook.send('push', firstPush(), { delivery: randomUUID() })
  const { repository, ...push } = firstPush()
  const after = { ...repository, full_name: 'Octocoders/Greetings', pushed_at: repository.pushed_at + 60 }
  const commits = [{ ...push.commits[0], id: 'f'.repeat(40) }]
  expect(await hook.send('push', { ...push, commits, repository: after })).toBe(1)
  expect(await linkOf(prompt)).toBe('octocoders/greetings')
})
