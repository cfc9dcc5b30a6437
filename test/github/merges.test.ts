// A merge and the push that it makes are two events, in either order, and one change. One push may bring several merges,
// from a merge queue or from a person who merges locally.
import { expect, test } from 'bun:test'
import { change, hookEachTest, paths, permutationsOf } from './hook.ts'
import { type CommitGiven, mergedEntry, opened, sha } from './payloads.ts'

const { hook } = hookEachTest()

/** The push of a merge commit: what was on the branch, which is not new, and the commit that joins it. */
const commits = [{ ...change, id: sha('warmer'), distinct: false }, {}]
const events = {
  toBranch: () => hook.push({ branch: 'warmer', after: sha('warmer'), commits: [change], created: true }),
  opening: () => hook.pull('opened'),
  merging: () => hook.merge(),
  toMain: () => hook.push({ after: sha('merge'), commits, at: '2026-11-14T13:00:00Z' }),
}

const inTurn = async (isMergeFirst: boolean, merge: () => Promise<number>, push: () => Promise<number>) => {
  for (const event of isMergeFirst ? [merge, push] : [push, merge]) await event()
}

test.each(permutationsOf(['toBranch', 'opening', 'merging', 'toMain'] as const).map((order) => [order]))(
  'one history, whatever the order of the events: %j',
  async (order) => {
    for (const name of order) await events[name]()
    expect(await hook.history('greeting')).toEqual([opened, mergedEntry])
  },
)

const fork = { headRepository: 'somebody/prompts', head: 'main' }

test.each([
  [true, 'main'],
  [false, 'main'],
  [true, 'develop'],
  [false, 'develop'],
])('a fork is known at its merge (merge first: %p) into %s', async (isMergeFirst, base) => {
  await hook.pull('opened', { ...fork, base })
  await inTurn(
    isMergeFirst,
    () => hook.merge({ ...fork, base }),
    () => hook.push({ branch: base, after: sha('merge'), commits: [change, {}] }),
  )
  expect(await hook.story('greeting')).toEqual([`pr_merged 7 ${sha('merge')}`])
})

test.each([[true], [false]])('prompts only the branch knows are merged too (merge first: %p)', async (isMergeFirst) => {
  await hook.push({ branch: 'warmer', commits: [{ modified: [paths.greeting, paths.farewell] }] })
  await inTurn(isMergeFirst, events.merging, events.toMain)
  expect(await hook.story('greeting')).toEqual([`pr_merged 7 ${sha('merge')}`])
  expect(await hook.story('farewell')).toEqual([`pr_merged 7 ${sha('merge')}`])
})

test('a push after the merge, and one of the same commit to another branch, are direct again', async () => {
  await events.merging()
  await events.toMain()
  await hook.push({ after: sha('hotfix'), commits: [change] })
  expect(await hook.story('greeting')).toContain(`deployed null ${sha('hotfix')}`)

  const other = [{ modified: [paths.other] }]
  await hook.push({ branch: 'forward', commits: other })
  await hook.merge({ number: 9, base: 'develop', mergeSha: sha('forward') })
  await hook.push({ after: sha('forward'), commits: other })
  await hook.merge({ number: 10, head: 'forward', base: 'develop', mergeSha: sha('forward') })
  expect(await hook.story('other')).toEqual([`deployed null ${sha('forward')}`, `pr_merged 10 ${sha('forward')}`])
})

test.each([[true], [false]])('a push to its branch after a merge is not merged (opened: %p)', async (isOpened) => {
  await events.toBranch()
  if (isOpened) await events.opening()
  const commits = [{ modified: [paths.farewell] }]
  await hook.push({ branch: 'warmer', commits, at: '2026-11-14T14:00:00Z' })
  await events.merging()
  expect(await hook.story('greeting')).toContain(`pr_merged 7 ${sha('merge')}`)
  expect(await hook.story('farewell')).not.toContain(`pr_merged 7 ${sha('merge')}`)
})

test('a pull request that is merged by pushing its own head is merged all the same, and opened when that is known', async () => {
  await hook.merge({ mergeSha: sha('warmer') })
  await events.toBranch()
  await hook.push({ after: sha('warmer'), commits: [{ ...change, distinct: false }], at: '2026-11-14T13:00:00Z' })
  expect(await hook.story('greeting')).toEqual([`pr_merged 7 ${sha('warmer')}`])
  await events.opening()
  expect(await hook.story('greeting')).toEqual([`pr_opened 7 ${sha('warmer')}`, `pr_merged 7 ${sha('warmer')}`])
})

test('a merge of the same commit in another repository converts nothing here', async () => {
  await events.toMain()
  await hook.merge({ repository: 'acme/mirror' })
  expect(await hook.story('greeting')).toEqual([`deployed null ${sha('warmer')}`])
})

test('concurrent merges and pushes do not miss each other', async () => {
  const numbers = Array.from({ length: 25 }, (_, index) => index + 1)
  // Ten at a time: more than run concurrently, and fewer than a busy machine cannot carry out before the deadline.
  for (let first = 0; first < numbers.length; first += 5) {
    await Promise.all(
      numbers.slice(first, first + 5).flatMap((number) => {
        const mergeSha = sha(`merge ${number}`)
        return [hook.push({ after: mergeSha, commits: [change] }), hook.merge({ number, mergeSha, ...fork })]
      }),
    )
  }
  const story = await hook.story('greeting')
  expect(story.sort()).toEqual(numbers.map((number) => `pr_merged ${number} ${sha(`merge ${number}`)}`).sort())
})

const touching = (words: string, ...modified: string[]): CommitGiven => ({ id: sha(words), modified })
const known = (commit: CommitGiven) => ({ ...commit, distinct: false })

type Branch = { number: number; head: string; commits: CommitGiven[] }
const seven: Branch = { number: 7, head: 'warmer', commits: [touching('warmer', paths.greeting)] }
/** It has two commits, and only the first of them touches its prompt. */
const both = [touching('shorter 1', paths.farewell), touching('shorter')]
const eight: Branch = { number: 8, head: 'shorter', commits: both }

/** What a queue leaves on the default branch; its commits were pushed to a branch of the queue before. */
const methods = {
  // Commits of branches come by their time, and merges of a queue after all of them.
  'merge commits': [...eight.commits, ...seven.commits, touching('merge 7'), touching('merge 8')],
  squashes: [touching('merge 7', paths.greeting), touching('merge 8', paths.farewell)],
  rebases: [touching('merge 7', paths.greeting), touching('rebased', paths.farewell), touching('merge 8')],
}

const merge = ({ number, head, commits }: Branch) =>
  hook.merge({ number, head, mergeSha: sha(`merge ${number}`), commits: commits.length })
const pushMain = (commits: CommitGiven[]) =>
  hook.push({ after: commits.at(-1)?.id as string, commits, at: '2026-11-14T13:00:00Z' })

async function open(...branches: Branch[]): Promise<void> {
  for (const { number, head, commits } of branches) {
    await hook.push({ branch: head, after: sha(head), commits, created: true })
    await hook.pull('opened', { number, head })
  }
}

const orders = permutationsOf(['push', 7, 8] as const)

const inOrder = async (order: ('push' | 7 | 8)[], commits: CommitGiven[]) => {
  for (const event of order) {
    if (event === 'push') await pushMain(commits)
    else await merge(event === 7 ? seven : eight)
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
  await open(seven, { ...eight, commits: [touching('shorter', paths.greeting)] })
  await inOrder(order, [touching('merge 7', paths.greeting), touching('merge 8', paths.greeting)].map(known))
  expect((await endOf('greeting')).sort()).toEqual([`pr_merged 7 ${sha('merge 7')}`, `pr_merged 8 ${sha('merge 8')}`])
})

test.each([true, false])('the commits that a fork is rebased to are all its own (merge first: %p)', async (first) => {
  await inTurn(
    first,
    () => hook.merge({ ...fork, commits: 2 }),
    () => pushMain([touching('rebased', paths.greeting), touching('merge')]),
  )
  expect(await hook.story('greeting')).toEqual([`pr_merged 7 ${sha('merge')}`])
})

test.each([true, false])('a fork is not given what others in the queue changed (merge first: %p)', async (first) => {
  const commits = [touching('merge 7', paths.greeting), touching('merge 8', paths.farewell)].map(known)
  await inTurn(
    first,
    () => hook.merge({ ...fork, number: 8, mergeSha: sha('merge 8'), commits: 5 }),
    () => pushMain(commits),
  )
  await merge(seven)
  expect(await endOf('greeting')).toEqual([`pr_merged 7 ${sha('merge 7')}`])
  expect(await endOf('farewell')).toEqual([`pr_merged 8 ${sha('merge 8')}`])
})
