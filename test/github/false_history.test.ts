// Pushes that look like changes and are not: a payload has no parents, and lists for a merge commit the files that came
// from the other side.
import { expect, test } from 'bun:test'
import { hookEachTest, paths } from './hook.ts'
import { merged, pullRequest, push, sha } from './payloads.ts'

const { hook } = hookEachTest()

const change = { modified: [paths.greeting] }

const mergeMessages = [
  "Merge branch 'main' into warmer",
  "Merge branch 'main' of github.com:acme/prompts",
  "Merge branch 'main' of https://github.com/acme/prompts into warmer",
  "Merge remote-tracking branch 'origin/main'",
  "Merge branches 'a' and 'b'",
  "Merge tag 'v1.2'",
]

test.each(mergeMessages)('a merge does not count what others changed: %s', async (message) => {
  await hook.send('push', push({ branch: 'warmer', commits: [{ modified: [paths.farewell] }], created: true }))
  await hook.send('pull_request', pullRequest('opened'))
  await hook.send('push', push({ after: sha('theirs'), commits: [change] }))
  const merge = { ...change, message }
  // A pull request takes the default branch in.
  const update = [{ ...change, id: sha('theirs'), distinct: false }, merge]
  await hook.send('push', push({ branch: 'warmer', after: sha('updated'), commits: update }))
  await hook.send('pull_request', merged({ headSha: sha('updated'), commits: 2 }))
  // Somebody pulls before a push.
  const pulled = [{ id: sha('own'), modified: [paths.other] }, merge]
  expect(await hook.send('push', push({ after: sha('pulled'), commits: pulled }))).toBe(1)
  expect(await hook.story('greeting')).toEqual([`deployed null ${sha('theirs')}`])
  expect(await hook.story('other')).toEqual([`deployed null ${sha('own')}`])
  expect((await hook.story('farewell')).map((line) => line.slice(0, 11))).toEqual(['pr_opened 7', 'pr_merged 7'])
})

test.each(['Merge the two greetings (#7)', 'Merge branch-specific words'])(
  'a plain commit whose title begins like that of a merge counts: %s',
  async (title) => {
    await hook.send('push', push({ after: sha('merge'), commits: [{ ...change, message: title }] }))
    expect(await hook.story('greeting')).toEqual([`deployed null ${sha('merge')}`])
  },
)

test('a direct commit behind the squash of a pull request that changes the same prompt is deployed', async () => {
  await hook.send('push', push({ branch: 'warmer', after: sha('warmer'), commits: [change], created: true }))
  await hook.send('pull_request', merged())
  const commits = [
    { ...change, id: sha('merge') },
    { ...change, id: sha('direct') },
  ]
  await hook.send('push', push({ after: sha('direct'), commits, at: '2026-11-14T13:00:00Z' }))
  expect((await hook.story('greeting')).sort()).toEqual([
    `deployed null ${sha('direct')}`,
    `pr_merged 7 ${sha('merge')}`,
  ])
})
