// A merge and the push that it makes are two events, in either order, and one change.
import { expect, test } from 'bun:test'
import { change, hookEachTest, paths, permutationsOf } from './hook.ts'
import { merged, mergedEntry, opened, pullRequest, push, sha } from './payloads.ts'

const { hook } = hookEachTest()

const toBranch = push({ branch: 'warmer', after: sha('warmer'), commits: [change], created: true })
const opening = pullRequest('opened')
const merging = merged()
/** The push of a merge commit: what was on the branch, which is not new, and the commit that joins it. */
const toMain = push({
  after: sha('merge'),
  commits: [{ ...change, id: sha('warmer'), distinct: false }, {}],
  at: '2026-11-14T13:00:00Z',
})
const events = { toBranch, opening, merging, toMain }

type Name = keyof typeof events
const send = (name: Name) => hook.send(name === 'opening' || name === 'merging' ? 'pull_request' : 'push', events[name])

test.each(permutationsOf(['toBranch', 'opening', 'merging', 'toMain'] as const).map((order) => [order]))(
  'one history, whatever the order of the events: %j',
  async (order) => {
    for (const name of order) await send(name)
    expect(await hook.history('greeting')).toEqual([opened, mergedEntry])
  },
)

const fork = { headRepository: 'somebody/prompts', head: 'main' }

test.each([
  ['the merge first', true, 'main'],
  ['the push first', false, 'main'],
  ['the merge first', true, 'develop'],
  ['the push first', false, 'develop'],
])('a fork is known at its merge, %s (%p) into %s', async (_, isMergeFirst, base) => {
  const events = [
    () => hook.send('pull_request', merged({ ...fork, base })),
    () => hook.send('push', push({ branch: base, after: sha('merge'), commits: [change, {}] })),
  ]
  await hook.send('pull_request', pullRequest('opened', { ...fork, base }))
  for (const event of isMergeFirst ? events : events.reverse()) await event()
  expect(await hook.story('greeting')).toEqual([`pr_merged 7 ${sha('merge')}`])
})

test.each([[true], [false]])('prompts only the branch knows are merged too (merge first: %p)', async (isMergeFirst) => {
  await hook.send('push', push({ branch: 'warmer', commits: [{ modified: [paths.greeting, paths.farewell] }] }))
  for (const name of isMergeFirst ? (['merging', 'toMain'] as const) : (['toMain', 'merging'] as const))
    await send(name)
  expect(await hook.story('greeting')).toEqual([`pr_merged 7 ${sha('merge')}`])
  expect(await hook.story('farewell')).toEqual([`pr_merged 7 ${sha('merge')}`])
})

test('a push after the merge, and one of the same commit to another branch, are direct again', async () => {
  await send('merging')
  await send('toMain')
  await hook.send('push', push({ after: sha('hotfix'), commits: [change] }))
  expect(await hook.story('greeting')).toContain(`deployed null ${sha('hotfix')}`)

  const other = [{ modified: [paths.other] }]
  await hook.send('push', push({ branch: 'forward', commits: other }))
  await hook.send('pull_request', merged({ number: 9, base: 'develop', mergeSha: sha('forward') }))
  await hook.send('push', push({ after: sha('forward'), commits: other }))
  await hook.send('pull_request', merged({ number: 10, head: 'forward', base: 'develop', mergeSha: sha('forward') }))
  expect(await hook.story('other')).toEqual([`deployed null ${sha('forward')}`, `pr_merged 10 ${sha('forward')}`])
})

test.each([[true], [false]])('a push to its branch after a merge is not merged (opened: %p)', async (isOpened) => {
  await send('toBranch')
  if (isOpened) await send('opening')
  const commits = [{ modified: [paths.farewell] }]
  await hook.send('push', push({ branch: 'warmer', commits, at: '2026-11-14T14:00:00Z' }))
  await send('merging')
  expect(await hook.story('greeting')).toContain(`pr_merged 7 ${sha('merge')}`)
  expect(await hook.story('farewell')).not.toContain(`pr_merged 7 ${sha('merge')}`)
})

test('a pull request that is merged by pushing its own head is opened and merged all the same', async () => {
  await hook.send('pull_request', merged({ mergeSha: sha('warmer') }))
  await send('toBranch')
  await hook.send('push', push({ after: sha('warmer'), commits: [{ ...change, distinct: false }] }))
  expect(await hook.story('greeting')).toEqual([`pr_opened 7 ${sha('warmer')}`, `pr_merged 7 ${sha('warmer')}`])
})

test('a merge of the same commit in another repository converts nothing here', async () => {
  await send('toMain')
  await hook.send('pull_request', merged({ repository: 'acme/mirror' }))
  expect(await hook.story('greeting')).toEqual([`deployed null ${sha('warmer')}`])
})

test('concurrent merges and pushes do not miss each other', async () => {
  const numbers = Array.from({ length: 25 }, (_, index) => index + 1)
  // Ten at a time: more than run concurrently, and fewer than a busy machine cannot carry out before the deadline.
  for (let first = 0; first < numbers.length; first += 5) {
    await Promise.all(
      numbers.slice(first, first + 5).flatMap((number) => {
        const mergeSha = sha(`merge ${number}`)
        return [
          hook.send('push', push({ after: mergeSha, commits: [change] })),
          hook.send('pull_request', merged({ number, mergeSha, ...fork })),
        ]
      }),
    )
  }
  const story = await hook.story('greeting')
  expect(story.sort()).toEqual(numbers.map((number) => `pr_merged ${number} ${sha(`merge ${number}`)}`).sort())
})
