// One push that brings several merges, from a merge queue or from a person who merges locally.
import { expect, test } from 'bun:test'
import { hookEachTest, paths, permutationsOf } from './hook.ts'
import { type CommitGiven, merged, pullRequest, push, sha } from './payloads.ts'

const { hook } = hookEachTest()

const touching = (words: string, ...modified: string[]): CommitGiven => ({ id: sha(words), modified })
const known = (commit: CommitGiven) => ({ ...commit, distinct: false })

type Branch = { number: number; head: string; commits: CommitGiven[] }
/** The later one has two commits, and only the first of them touches its prompt. */
const seven: Branch = { number: 7, head: 'warmer', commits: [touching('warmer', paths.greeting)] }
const eight: Branch = {
  number: 8,
  head: 'shorter',
  commits: [touching('shorter 1', paths.farewell), touching('shorter')],
}

/** What a queue leaves on the default branch; its commits were pushed to a branch of the queue before. */
const methods = {
  // Commits of branches come by their time, and merges of a queue after all of them.
  'merge commits': [...eight.commits, ...seven.commits, touching('merge 7'), touching('merge 8')],
  squashes: [touching('merge 7', paths.greeting), touching('merge 8', paths.farewell)],
  rebases: [touching('merge 7', paths.greeting), touching('rebased', paths.farewell), touching('merge 8')],
}

const toBranch = ({ head, commits }: Branch) => push({ branch: head, after: sha(head), commits, created: true })
const opening = ({ number, head }: Branch) => pullRequest('opened', { number, head })
const merging = ({ number, head, commits }: Branch) =>
  merged({ number, head, mergeSha: sha(`merge ${number}`), commits: commits.length })
const toMain = (commits: CommitGiven[], more: object = {}) =>
  push({ after: commits.at(-1)?.id as string, commits, at: '2026-11-14T13:00:00Z', ...more })

async function open(...branches: Branch[]): Promise<void> {
  for (const branch of branches) {
    await hook.send('push', toBranch(branch))
    await hook.send('pull_request', opening(branch))
  }
}

const orders = permutationsOf(['push', 7, 8] as const)

const inOrder = async (order: ('push' | 7 | 8)[], commits: CommitGiven[]) => {
  for (const event of order) {
    if (event === 'push') await hook.send('push', toMain(commits))
    else await hook.send('pull_request', merging(event === 7 ? seven : eight))
  }
}

const endOf = async (name: keyof typeof paths) =>
  (await hook.story(name)).filter((line) => !line.startsWith('pr_opened'))

const cases = Object.entries(methods).flatMap(([method, commits]) =>
  orders.map((order) => [method, order, commits] as const),
)

test.each(cases)('%s of a queue are merges of their prompts and no deploys: %j', async (_, order, commits) => {
  await open(seven, eight)
  await inOrder(order, commits.map(known))
  expect(await endOf('greeting')).toEqual([`pr_merged 7 ${sha('merge 7')}`])
  expect(await endOf('farewell')).toEqual([`pr_merged 8 ${sha('merge 8')}`])
})

test.each(orders.map((order) => [order]))('a commit of no pull request among them is a deploy: %j', async (order) => {
  await open(seven, eight)
  const direct = { ...touching('direct', paths.other), author: { name: 'Direct', email: 'direct@example.com' } }
  const last = touching('last', paths.greeting)
  await inOrder(order, [direct, ...methods['merge commits'].map(known), last])
  const deployed = { action: 'deployed', commit_sha: sha('direct'), user: { name: 'Direct' } }
  expect(await hook.history('other')).toMatchObject([deployed])
  expect((await endOf('greeting')).sort()).toEqual([`deployed null ${sha('last')}`, `pr_merged 7 ${sha('merge 7')}`])
  expect(await endOf('farewell')).toEqual([`pr_merged 8 ${sha('merge 8')}`])
})

test.each(orders.map((order) => [order]))('a prompt that both have changed is merged twice: %j', async (order) => {
  const both = { ...eight, commits: [touching('shorter', paths.greeting)] }
  await open(seven, both)
  await inOrder(order, [touching('merge 7', paths.greeting), touching('merge 8', paths.greeting)].map(known))
  expect((await endOf('greeting')).sort()).toEqual([`pr_merged 7 ${sha('merge 7')}`, `pr_merged 8 ${sha('merge 8')}`])
})

const fork = { headRepository: 'somebody/prompts', head: 'main' }

test.each([true, false])('the commits that a fork is rebased to are all its own (merge first: %p)', async (first) => {
  const events = [
    () => hook.send('pull_request', merged({ ...fork, commits: 2 })),
    () => hook.send('push', toMain([touching('rebased', paths.greeting), touching('merge')])),
  ]
  for (const event of first ? events : events.reverse()) await event()
  expect(await hook.story('greeting')).toEqual([`pr_merged 7 ${sha('merge')}`])
})

test.each([true, false])('a fork is not given what others in the queue changed (merge first: %p)', async (first) => {
  const commits = [touching('merge 7', paths.greeting), touching('merge 8', paths.farewell)].map(known)
  const events = [
    () => hook.send('pull_request', merged({ ...fork, number: 8, mergeSha: sha('merge 8'), commits: 5 })),
    () => hook.send('push', toMain(commits)),
  ]
  for (const event of first ? events : events.reverse()) await event()
  await hook.send('pull_request', merging(seven))
  expect(await endOf('greeting')).toEqual([`pr_merged 7 ${sha('merge 7')}`])
  expect(await endOf('farewell')).toEqual([`pr_merged 8 ${sha('merge 8')}`])
})
