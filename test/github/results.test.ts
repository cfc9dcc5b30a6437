import { expect, test } from 'bun:test'
import { createMetrics } from '../../src/ops/metrics.ts'
import { change, hookEachTest } from './hook.ts'
import { merged, pullRequest, push, repositoryEvent } from './payloads.ts'

const { service, hook } = hookEachTest()

const commits = (count: number) => [change, ...Array.from({ length: count - 1 }, () => ({}))]
const forced = { more: { forced: true } }
const elsewhere = { repository: 'acme/none' }
const unlisted = () => {
  const payload = push({ commits: [change, {}] })
  Object.assign(payload.commits[1] as object, { added: null, modified: null, removed: null })
  return payload
}

const sync = 'Run prompt-signals sync to complete the histories.'
const messages = {
  recorded: 'The histories have new or changed entries.',
  unchanged: 'The event changed no history.',
  ignored: 'This event does not change a history.',
  unlinked_repository: 'No prompt is linked to a file of this repository.',
  unlinked_files: 'No prompt is linked to a file that this push changes.',
  force_push: `The force push removed commits from the branch, and does not say which. ${sync}`,
  too_many_commits: `GitHub lists at most 2,048 commits of a push. ${sync}`,
  files_not_listed: `GitHub has not listed the files of every commit. ${sync}`,
}

async function readCounts(): Promise<Record<string, number>> {
  const text = await service.services.metrics.text()
  const lines = text.matchAll(/^prompt_signals_github_events_total\{outcome="(\w+)"\} (\d+)$/gm)
  return Object.fromEntries([...lines].map(([, outcome, count]) => [outcome, Number(count)]))
}

test.each<[what: string, event: string, payload: object, outcome: keyof typeof messages, recorded: number]>([
  ['a change', 'push', push({ commits: [change] }), 'recorded', 1],
  ['a pull request of no known prompt', 'pull_request', pullRequest('opened'), 'unchanged', 0],
  ['an edited repository', 'repository', repositoryEvent('edited', 'Acme/Prompts'), 'unchanged', 0],
  ['another branch', 'push', push({ branch: 'warmer', commits: [change] }), 'unchanged', 0],
  [
    'a branch that ends like the default one',
    'push',
    push({ branch: 'feature/main', commits: [change] }),
    'unchanged',
    0,
  ],
  ['a tag', 'push', push({ ref: 'refs/tags/main', commits: [change] }), 'ignored', 0],
  // This prefix is as long as refs/heads/ with the first letter.
  ['a tag that ends like it', 'push', push({ ref: 'refs/tags/_main', commits: [change] }), 'ignored', 0],
  ['a deleted branch', 'push', push({ branch: 'warmer', deleted: true }), 'ignored', 0],
  ['a deletion, whatever it lists', 'push', { ...push({ commits: [change] }), deleted: true }, 'ignored', 0],
  ['a label', 'pull_request', pullRequest('labeled'), 'ignored', 0],
  ['new commits', 'pull_request', pullRequest('synchronize'), 'ignored', 0],
  ['an edited pull request', 'pull_request', pullRequest('edited'), 'ignored', 0],
  ['another repository', 'push', push({ ...elsewhere, commits: [change] }), 'unlinked_repository', 0],
  ['a pull request elsewhere', 'pull_request', merged(elsewhere), 'unlinked_repository', 0],
  ['another file', 'push', push({ commits: [{ added: ['README.md'] }] }), 'unlinked_files', 0],
  ['no commits', 'push', push({ commits: [] }), 'unlinked_files', 0],
  ['removed commits', 'push', push({ commits: [], ...forced }), 'force_push', 0],
  ['rewritten commits', 'push', push({ commits: [change], ...forced }), 'force_push', 1],
  ['2,048 commits', 'push', push({ commits: commits(2_048) }), 'too_many_commits', 1],
  ['2,047 commits', 'push', push({ commits: commits(2_047) }), 'recorded', 1],
  ['no list of files', 'push', unlisted(), 'files_not_listed', 1],
  ['a rewritten branch', 'push', push({ branch: 'warmer', commits: [], ...forced }), 'unlinked_files', 0],
])('a delivery of %s says so', async (_, event, payload, outcome, recorded) => {
  const before = await readCounts()
  const { status, body } = await hook.deliver(event, payload)
  expect(status).toBe(200)
  expect(body).toEqual({ data: { recorded, outcome, message: messages[outcome] } })
  expect(await readCounts()).toEqual({ ...before, [outcome]: (before[outcome] as number) + 1 })
})

test('an unsigned delivery is not counted', async () => {
  const before = await readCounts()
  await hook.deliver('push', push({ commits: [change] }), { secret: 'wrong' })
  expect(await readCounts()).toEqual(before)
})

test('only an incomplete delivery is logged', () => {
  const warnings: unknown[] = []
  const log = { warn: (...line: unknown[]) => warnings.push(line) }
  const { github } = createMetrics(log as never)
  github.ended({ recorded: 1, outcome: 'recorded', message: 'Recorded.' }, 'org_1')
  github.ended({ recorded: 0, outcome: 'force_push', message: 'Run sync.' }, 'org_1')
  expect(warnings).toEqual([[{ org: 'org_1', outcome: 'force_push' }, 'GitHub event incomplete: Run sync.']])
})
