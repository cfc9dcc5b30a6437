// Deliveries that GitHub has really sent, as @octokit/webhooks-examples has recorded them.
import { expect, test } from 'bun:test'
import recorded from '@octokit/webhooks-examples/api.github.com/index.json'
import { hookEachTest } from './hook.ts'

// biome-ignore lint/suspicious/noExplicitAny: payloads of every shape
type Payload = any

const { service, hook } = hookEachTest()

const all = (recorded as unknown as { name: string; examples: Payload[] }[]).flatMap(({ name, examples }) =>
  examples.map((payload) => ({ name, payload })),
)
const example = (event: string, fits: (payload: Payload) => boolean): Payload =>
  structuredClone(all.find(({ name, payload }) => name === event && fits(payload))?.payload)

const link = (repository: string): Promise<string> =>
  service.createPrompt(hook.tenant, 'README', { repository, path: 'README.md' })

test('every recorded delivery of every event is acknowledged', async () => {
  await link('Codertocat/Hello-World')
  await link('Octocoders/Hello-World')
  const rejected: unknown[] = []
  for (const { name, payload } of all) {
    const { status, text } = await hook.deliver(name, payload)
    if (status !== 200) rejected.push([name, payload.action, status, text])
  }
  expect(rejected).toEqual([])
  expect(all.length).toBeGreaterThan(100)
})

test('the first push of a repository, and a pull request that is opened, closed, reopened and closed again', async () => {
  const prompt = await link('Codertocat/Hello-World')
  const firstPush = example('push', ({ created, ref }) => created && ref === 'refs/heads/master')
  expect(await hook.send('push', firstPush)).toBe(1)
  const { repository, commits, ...push } = firstPush
  const branch = { ref: 'refs/heads/changes', after: 'ec26c3e57ca3a959ca5aad62de7213c562f8c821' }
  const own = [{ ...commits[0], id: branch.after, added: [], modified: ['README.md'] }]
  const pushed_at = Date.parse('2019-05-15T15:20:30Z') / 1_000
  await hook.send('push', { ...push, ...branch, commits: own, repository: { ...repository, pushed_at } })

  const event = (action: string) => example('pull_request', (payload) => payload.action === action)
  for (const action of ['opened', 'closed', 'reopened']) await hook.send('pull_request', event(action))
  const again = event('closed')
  again.pull_request.closed_at = '2019-05-15T16:00:00Z'
  await hook.send('pull_request', again)

  const user = { name: 'Codertocat', email: '21031067+Codertocat@users.noreply.github.com' }
  const pull = {
    ...{ user, commit_sha: branch.after, branch_name: 'changes' },
    ...{ pr_number: 2, pr_url: 'https://github.com/Codertocat/Hello-World/pull/2' },
  }
  const deployed = {
    ...{ action: 'deployed', user, commit_sha: '6113728f27ae82c7b1a177c8d03f9e96e0adf246', branch_name: 'master' },
    ...{ pr_number: null, pr_url: null, created_at: '2019-05-15T15:20:57.000Z' },
  }
  const { body } = await service.getHistory(prompt, hook.tenant.key)
  expect(body.data.map(({ id: _, ...entry }: Record<string, unknown>) => entry).reverse()).toEqual([
    { action: 'pr_opened', ...pull, created_at: '2019-05-15T15:20:33.000Z' },
    deployed,
    { action: 'pr_closed', ...pull, created_at: '2019-05-15T15:21:18.000Z' },
    { action: 'pr_closed', ...pull, created_at: '2019-05-15T16:00:00.000Z' },
  ])
})
