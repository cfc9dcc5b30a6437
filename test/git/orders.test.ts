// Sync and the webhook report the same changes. In whichever order they come, and however often, the history is the same.
import { expect, test } from 'bun:test'
import type { NewHistoryEntry } from '../../src/history/schema.ts'
import { inFullRun } from '../full.ts'
import { createHook, type Entry, paths, permutationsOf } from '../github/hook.ts'
import { merged, push } from '../github/payloads.ts'
import { useService } from '../use.ts'
import { type Clone, createClone, syncClone } from './clone.ts'

const service = useService()
type Story = {
  clone: Clone
  /** What GitHub delivers, beside the sync. */
  deliveries: [event: string, payload: object][]
  /** What clients record meanwhile. They and a source may know different times and users of an entry. */
  calls?: object[]
  /** The history of the prompt from there on, oldest first. */
  expected: Entry[]
}

const pushedAt = '2026-02-01T08:00:00Z'
const mergedAt = '2026-02-01T07:59:58Z'
const github = { committer: 'GitHub <noreply@github.com>' }
const ada = { name: 'Ada', email: 'ada@example.com' }
const bob = { name: 'bob', email: '102+bob@users.noreply.github.com' }
const touching = { modified: [paths.greeting] }

const deployed = (commit_sha: string, title: string, time = pushedAt, user = ada): Entry => ({
  ...{ action: 'deployed', user, commit_sha, branch_name: 'main', pr_number: null, pr_url: null },
  ...{ created_at: new Date(time).toISOString(), title, authors: [] },
})
/** GitHub knows the title that its pull request has now, git the one that it had when it was merged. */
const mergedAs = (commit_sha: string, title = 'Greet warmly', time = mergedAt, user = bob): Entry => ({
  ...deployed(commit_sha, title, time, user),
  ...{ action: 'pr_merged', pr_number: 7, pr_url: 'https://github.com/Acme/Prompts/pull/7', authors: ['ada'] },
})

/** A clone with the prompt in it, and a branch that changes it in two commits. */
function startClone(): { clone: Clone; first: string; second: string } {
  const clone = createClone('https://github.com/Acme/Prompts.git')
  clone.change('Begin', paths.greeting)
  clone.branch('warmer')
  const first = clone.change('Warmer', paths.greeting)
  const second = clone.change('Warmer still', paths.greeting)
  clone.backTo('main')
  clone.change('Say more', 'README.md')
  return { clone, first, second }
}

const pushOf = (...commits: { id: string; message?: string; author?: object }[]): [string, object] => [
  'push',
  push({
    after: commits.at(-1)?.id as string,
    at: pushedAt,
    commits: commits.map((one) => ({ ...touching, author: ada, ...one })),
  }),
]
/** The commits of the branch, as `startClone` names them. */
const named = (first: string, second: string) => [
  { id: first, message: 'Warmer' },
  { id: second, message: 'Warmer still' },
]
const mergeOf = (mergeSha: string, headSha: string): [string, object] => [
  'pull_request',
  merged({ mergeSha, headSha, closedAt: mergedAt, commits: 2 }),
]

function mergeCommit(): Story {
  const { clone, first, second } = startClone()
  const message = 'Merge pull request #7 from Acme/warmer\n\nWarmer'
  const merge = clone.merge('warmer', message, github)
  const deliveries = [pushOf({ id: first }, { id: second }, { id: merge, message }), mergeOf(merge, second)]
  return { clone, deliveries, expected: [mergedAs(merge)] }
}

/** The webhook is not subscribed to pull requests: only git knows that it is one. */
function mergeCommitInGit(): Story {
  const { clone, deliveries, expected } = mergeCommit()
  const [entry] = expected as [Entry]
  return {
    clone,
    deliveries: deliveries.slice(0, 1),
    expected: [{ ...mergedAs(entry.commit_sha, 'Warmer', '2026-01-01T14:00:00Z', ada), authors: ['Ada'] }],
  }
}

function squash(title = 'Warmer (#7)'): Story {
  const { clone, second } = startClone()
  clone.git('merge', '--quiet', '--squash', 'warmer')
  const squashed = clone.commit(title, github)
  const deliveries = [pushOf({ id: squashed, message: title }), mergeOf(squashed, second)]
  return { clone, deliveries, expected: [mergedAs(squashed)] }
}

function rebase(): Story {
  const { clone, second } = startClone()
  const rebased = ['Warmer', 'Warmer still'].map((message) => {
    return clone.change(message, paths.greeting, github)
  }) as [string, string]
  const deliveries = [pushOf(...rebased.map((id) => ({ id }))), mergeOf(rebased[1], second)]
  return { clone, deliveries, expected: [mergedAs(rebased[1])] }
}

/** Both know the commit. Git names its author by the mailmap, but what GitHub signed is final. */
function direct(): Story {
  const { clone } = startClone()
  clone.write('.mailmap', 'Grace <grace@example.com> <old@example.com>\n')
  const id = clone.change('Change', paths.greeting, { author: 'G <old@example.com>' })
  const author = { name: 'G', email: 'old@example.com', username: 'g' }
  return {
    clone,
    deliveries: [pushOf({ id, author, message: 'Change' })],
    expected: [deployed(id, 'Change', pushedAt, { name: 'G', email: 'old@example.com' })],
  }
}

function localMerge(): Story {
  const { clone, first, second } = startClone()
  const message = "Merge branch 'warmer'"
  const merge = clone.merge('warmer', message)
  const deliveries = [pushOf(...named(first, second), { id: merge, message })]
  return { clone, deliveries, expected: [deployed(first, 'Warmer'), deployed(second, 'Warmer still')] }
}

/** The merge has the file like neither side; a payload does not show what a merge changes itself. */
function resolvedMerge(): Story {
  const { clone, first, second } = startClone()
  const message = "Merge branch 'warmer'"
  clone.git('merge', '--quiet', '--no-ff', '--no-commit', 'warmer')
  const merge = clone.change(message, paths.greeting)
  const deliveries = [pushOf(...named(first, second), { id: merge, message })]
  // The merge has the time of git, because only git knows its change.
  const ofMerge = deployed(merge, message, '2026-01-01T14:00:00Z')
  return { clone, deliveries, expected: [ofMerge, deployed(first, 'Warmer'), deployed(second, 'Warmer still')] }
}

/** What a pipeline records after the rest; neither sync nor the webhook knows it. */
const deployCall = (commit_sha: string, branch_name = 'main') => ({
  ...{ action: 'deployed', user: ada, commit_sha, branch_name, created_at: '2026-02-01T09:00:00Z' },
})

/** Both entries stay. */
function deployedMerge(): Story {
  const { clone, deliveries, expected } = mergeCommit()
  const [{ commit_sha }] = expected as [Entry]
  const calls = [deployCall(commit_sha.slice(0, 7))]
  return { clone, deliveries, calls, expected: [...expected, deployed(commit_sha, '')] }
}

/** Two commits go live, then the first again; and on another branch. */
function rollback(): Story {
  const { clone } = startClone()
  const [first, second] = ['One', 'Two'].map((message) => {
    return clone.change(message, paths.greeting)
  }) as [string, string]
  const calls = [deployCall(first.slice(0, 12).toUpperCase()), deployCall(first, 'release')]
  const live = [first, second, first].map((commit) => deployed(commit, ''))
  const deliveries = [pushOf({ id: first }, { id: second })]
  return { clone, deliveries, calls, expected: [...live, { ...deployed(first, ''), branch_name: 'release' }] }
}

test('what is removed with its branch comes back, also the commits of a pull request that git does not show', async () => {
  const { clone, deliveries, expected } = rebase()
  const hook = await createHook(service, 'Acme/Prompts')
  const sync = () => syncClone(clone, service.url, hook.tenant.key)
  await sync()
  for (const [event, payload] of deliveries) await hook.send(event, payload)
  const read = async () => (await hook.history('greeting', '&include=title')).slice(1).map(identityOf)
  expect(await read()).toEqual(expected.map(identityOf))
  const { key } = await service.createKey(hook.tenant, ['history:delete'])
  expect((await service.post('/history/remove', key, { branch: 'main' })).status).toBe(200)
  await sync()
  const commits = clone.git('log', '--format=%H', '--reverse', '-2').split('\n')
  expect(await read()).toEqual(commits.map((commit) => identityOf(deployed(commit, ''))))
})

const identityOf = ({ action, commit_sha, branch_name, pr_number }: Entry) =>
  [action, commit_sha, branch_name, pr_number].join(' ')

test.each([
  ['a merge commit', mergeCommit],
  ['a merge commit that only git knows to be that of a pull request', mergeCommitInGit],
  ['a squash', squash],
  ['a squash whose title has another number', () => squash('Warmer, closes nothing (#9)')],
  ['a rebase', rebase],
  ['a commit on the branch', direct],
  ["a merge that is no pull request's", localMerge],
  ['a merge that changes the file itself', resolvedMerge],
  ['a merge that a pipeline deploys', deployedMerge],
  ['a rollback, and a deploy of another branch', rollback],
])('%s is recorded once and in the same way in every order, and again', async (_, arrange) => {
  const { clone, deliveries, calls = [], expected } = arrange()
  const histories: Record<string, unknown[]> = {}
  const events = ['sync', ...deliveries, ...calls.map((call): [string, object] => ['call', call])]
  const shown = (entries: Entry[]) => (calls.length === 0 ? entries : entries.map(identityOf).toSorted())
  const orders = permutationsOf(events)
  // Of four events a third of the orders, which have each two of them in both orders.
  for (const order of inFullRun(orders, orders.length > 6 ? orders.filter((_, index) => index % 3 === 0) : orders)) {
    const hook = await createHook(service, 'Acme/Prompts')
    const name = order.map((event) => (typeof event === 'string' ? event : event[0])).join(', ')
    const play = async (event: (typeof events)[number]) => {
      if (typeof event === 'string') await syncClone(clone, service.url, hook.tenant.key)
      else if (event[0] === 'call') await service.addHistory(hook.prompts.greeting, [event[1] as NewHistoryEntry])
      else await hook.send(event[0] as string, event[1] as object)
    }
    for (const event of order) await play(event)
    const once = await hook.history('greeting', '&include=title')
    for (const event of order) await play(event)
    histories[name] = shown(once.slice(1))
    histories[`${name}, and again`] = shown((await hook.history('greeting', '&include=title')).slice(1))
  }
  expect(histories).toEqual(Object.fromEntries(Object.keys(histories).map((order) => [order, shown(expected)])))
})
