// What became of a delivery is in its answer, which GitHub shows, and in a metric.
import { expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { createMetrics } from '../../src/ops/metrics.ts'
import { hookEachTest, paths } from './hook.ts'
import { merged, pullRequest, push, renamed } from './payloads.ts'

const { service, hook } = hookEachTest()

const change = { modified: [paths.greeting] }
const many = (count: number) => Array.from({ length: count }, () => ({}))
const unlisted = () => {
  const payload = push({ commits: [change, {}] })
  const [first, { added: _, modified: __, removed: ___, ...second }] = payload.commits as [
    object,
    Record<string, unknown>,
  ]
  return { ...payload, commits: [first, second] }
}

/** The counts of the metric that are not zero. */
async function readCounts(): Promise<Record<string, number>> {
  const text = await service.services.metrics.text()
  const lines = text.matchAll(/^prompt_signals_github_deliveries_total\{outcome="(\w+)"\} (\d+)$/gm)
  return Object.fromEntries([...lines].map(([, outcome, count]) => [outcome, Number(count)]))
}

const sync = 'Run prompt-signals sync to complete the histories.'

test.each([
  ['a change', 'push', push({ commits: [change] }), 1, 'recorded', 'The histories have new or changed entries.'],
  [
    'a pull request of no known prompt',
    'pull_request',
    pullRequest('opened'),
    0,
    'unchanged',
    'The delivery changed no history.',
  ],
  [
    'a repository that is renamed',
    'repository',
    renamed('Acme/Words', 'Prompts'),
    0,
    'unchanged',
    'The delivery changed no history.',
  ],
  [
    'a tag',
    'push',
    push({ ref: 'refs/tags/v1', commits: [change] }),
    0,
    'ignored',
    'The event is not one that changes a history.',
  ],
  [
    'a new member',
    'organization',
    { action: 'member_added', organization: { login: 'Acme', id: 1 } },
    0,
    'ignored',
    'The event is not one that changes a history.',
  ],
  ['a label', 'pull_request', pullRequest('labeled'), 0, 'ignored', 'The event is not one that changes a history.'],
  [
    'another repository',
    'push',
    push({ repository: 'acme/none', commits: [change] }),
    0,
    'unlinked_repository',
    'No prompt is linked to a file of this repository.',
  ],
  [
    'a pull request elsewhere',
    'pull_request',
    merged({ repository: 'acme/none' }),
    0,
    'unlinked_repository',
    'No prompt is linked to a file of this repository.',
  ],
  [
    'another file',
    'push',
    push({ commits: [{ added: ['README.md'] }] }),
    0,
    'unlinked_files',
    'No prompt is linked to a file that this push changes.',
  ],
  [
    'commits taken back',
    'push',
    push({ commits: [], more: { forced: true } }),
    0,
    'force_push',
    `The push removed commits from the branch, and does not say which. ${sync}`,
  ],
  [
    'commits rewritten',
    'push',
    push({ commits: [change], more: { forced: true } }),
    1,
    'force_push',
    `The push removed commits from the branch, and does not say which. ${sync}`,
  ],
  [
    '2,048 commits',
    'push',
    push({ commits: [change, ...many(2_047)] }),
    1,
    'too_many_commits',
    `GitHub lists no more than 2,048 commits of a push. ${sync}`,
  ],
  [
    '2,047 commits',
    'push',
    push({ commits: [change, ...many(2_046)] }),
    1,
    'recorded',
    'The histories have new or changed entries.',
  ],
  [
    'no list of files',
    'push',
    unlisted(),
    1,
    'files_not_listed',
    `GitHub has not listed the files of every commit. ${sync}`,
  ],
  [
    'a branch that is rewritten',
    'push',
    push({ branch: 'warmer', commits: [], more: { forced: true } }),
    0,
    'unlinked_files',
    'No prompt is linked to a file that this push changes.',
  ],
] as const)('a delivery of %s says so', async (_, event, payload, recorded, outcome, message) => {
  const before = await readCounts()
  const { status, body } = await hook.deliver(event, payload)
  expect([status, body]).toEqual([200, { data: { recorded, outcome, message } }])
  expect(await readCounts()).toEqual({ ...before, [outcome]: (before[outcome] as number) + 1 })
})

test('a delivery that was recorded before says so', async () => {
  const delivery = randomUUID()
  await hook.send('push', push({ commits: [change] }), { delivery })
  const { body } = await hook.deliver('push', push({ commits: [change] }), { delivery })
  expect(body).toEqual({ data: { recorded: 0, outcome: 'repeated', message: 'The delivery was recorded before.' } })
})

test('one that is not signed is not counted', async () => {
  const before = await readCounts()
  await hook.deliver('push', push({ commits: [change] }), { secret: 'wrong' })
  expect(await readCounts()).toEqual(before)
})

test('one that leaves something out is in the log, and no other', () => {
  const warnings: unknown[] = []
  const log = { warn: (...line: unknown[]) => warnings.push(line) }
  const { deliveries } = createMetrics(log as never)
  deliveries.ended({ recorded: 1, outcome: 'recorded', message: 'Recorded.' }, 'org_1')
  deliveries.ended({ recorded: 0, outcome: 'force_push', message: 'Run sync.' }, 'org_1')
  expect(warnings).toEqual([[{ org: 'org_1', outcome: 'force_push' }, 'GitHub delivery incomplete: Run sync.']])
})
