import { expect, test } from 'bun:test'
import { hookEachTest, paths, permutationsOf } from './hook.ts'
import { idOf, merged, mergedEntry, opened, pullRequest, push, sha } from './payloads.ts'

const { service, hook } = hookEachTest()

const fork = { headRepository: 'somebody/prompts' }
const touching = (...files: string[]) => [{ modified: files }]
const toBranch = (more: object = {}) =>
  push({ branch: 'warmer', after: sha('warmer'), commits: touching(paths.greeting), created: true, ...more })

test('a pull request is recorded for every prompt that was pushed to its branch, and for no other', async () => {
  await hook.send('push', toBranch())
  await hook.send('push', push({ branch: 'warmer', commits: touching(paths.farewell) }))
  await hook.send('push', push({ branch: 'cooler', commits: touching(paths.other) }))
  expect(await hook.send('pull_request', pullRequest('opened'))).toBe(2)
  expect(await hook.send('pull_request', merged())).toBe(2)
  expect(await hook.history('greeting')).toEqual([opened, mergedEntry])
  expect(await hook.history('farewell')).toEqual([opened, mergedEntry])
  expect(await hook.history('other')).toEqual([])
})

test('a deleted account is shown as ghost, and an unknown merger as the author', async () => {
  await hook.send('push', toBranch())
  await hook.send('pull_request', pullRequest('opened', { user: null }))
  const payload = merged()
  await hook.send('pull_request', { ...payload, pull_request: { ...payload.pull_request, merged_by: null } })
  expect((await hook.history('greeting')).map(({ user }) => user.name)).toEqual(['ghost', 'ada'])
})

test('a push that brings a prompt into an open pull request opens it for that prompt, once', async () => {
  await hook.send('push', toBranch())
  await hook.send('pull_request', pullRequest('opened'))
  const more = push({ branch: 'warmer', after: sha('more'), commits: touching(paths.greeting, paths.farewell) })
  expect(await hook.send('push', more)).toBe(1)
  expect(await hook.send('push', { ...more, after: sha('again') })).toBe(0)
  expect(await hook.history('farewell')).toEqual([{ ...opened, commit_sha: sha('more') }])
  expect(await hook.send('pull_request', merged())).toBe(2)
})

test('a merge whose time is ahead of now is merged at the time of its arrival', async () => {
  service.clock.set('2026-11-15T01:02:03.004Z')
  await hook.send('push', toBranch())
  await hook.send('pull_request', pullRequest('opened'))
  await hook.send('pull_request', merged({ closedAt: '2036-11-14T12:00:00Z' }))
  expect(await hook.history('greeting')).toEqual([opened, { ...mergedEntry, created_at: '2026-11-15T01:02:03.004Z' }])
})

test.each(permutationsOf(['closing', 'reopening', 'closingAgain'] as const).map((order) => [order]))(
  'each closing is an entry, and the last event counts, whatever their order: %j',
  async (order) => {
    const events = {
      closing: pullRequest('closed', { closedAt: '2026-11-14T14:00:00Z' }),
      reopening: pullRequest('reopened', { updatedAt: '2026-11-14T14:30:00Z' }),
      closingAgain: pullRequest('closed', { closedAt: '2026-11-14T15:00:00Z' }),
    }
    await hook.send('push', toBranch())
    await hook.send('pull_request', pullRequest('opened'))
    for (const name of order) await hook.send('pull_request', events[name])
    expect(
      (await hook.history('greeting')).map(({ action, created_at }) => [action, created_at.slice(11, 16)]),
    ).toEqual([
      ['pr_opened', '12:30'],
      ['pr_closed', '14:00'],
      ['pr_closed', '15:00'],
    ])
    const later = { branch: 'warmer', commits: touching(paths.other), at: '2026-11-14T15:30:00Z' }
    expect(await hook.send('push', push(later))).toBe(0)
    await hook.send('pull_request', merged({ closedAt: '2026-11-14T16:00:00Z' }))
    expect((await hook.story('greeting')).at(-1)).toBe(`pr_merged 7 ${sha('merge')}`)
  },
)

test('a merge is the last event, whatever is delivered after it', async () => {
  const closedAt = '2026-11-14T13:00:00Z'
  await hook.send('push', toBranch())
  await hook.send('pull_request', pullRequest('opened'))
  await hook.send('pull_request', merged({ closedAt }))
  await hook.send('pull_request', pullRequest('reopened', { updatedAt: closedAt }))
  const commits = [{ id: sha('warmer'), ...touching(paths.greeting)[0] }, { id: sha('merge') }]
  expect(await hook.send('push', push({ after: sha('merge'), commits, at: closedAt }))).toBe(0)
  expect(await hook.history('greeting')).toEqual([opened, mergedEntry])
})

test('what was pushed while it was closed counts when it is reopened', async () => {
  await hook.send('pull_request', pullRequest('opened'))
  await hook.send('pull_request', pullRequest('closed', { closedAt: '2026-11-14T14:00:00Z' }))
  expect(await hook.send('push', toBranch({ after: sha('later'), at: '2026-11-14T15:00:00Z' }))).toBe(0)
  expect(
    await hook.send(
      'pull_request',
      pullRequest('reopened', { headSha: sha('later'), updatedAt: '2026-11-14T16:00:00Z' }),
    ),
  ).toBe(1)
  expect(await hook.story('greeting')).toEqual([`pr_opened 7 ${sha('later')}`])
})

test.each(permutationsOf(['first', 'opening', 'second', 'closing'] as const).map((order) => [order]))(
  'a closed pull request is opened and closed once for each prompt: %j',
  async (order) => {
    const files = touching(paths.greeting, paths.farewell)
    const second = { branch: 'warmer', after: sha('second'), commits: files, at: '2026-11-14T13:00:00Z' }
    const deliveries = {
      first: ['push', toBranch({ commits: touching(paths.greeting, paths.other) })],
      opening: ['pull_request', pullRequest('opened')],
      second: ['push', push(second)],
      closing: ['pull_request', pullRequest('closed', { headSha: sha('second'), closedAt: '2026-11-14T14:00:00Z' })],
    } as const
    for (const [event, payload] of order.map((name) => deliveries[name])) await hook.send(event, payload)
    for (const prompt of ['greeting', 'farewell', 'other'] as const) {
      expect((await hook.history(prompt)).map(({ action }) => action)).toEqual(['pr_opened', 'pr_closed'])
    }
  },
)

test('the branch of a fork is not mistaken for ours of the same name', async () => {
  await hook.send('push', toBranch())
  expect(await hook.send('pull_request', pullRequest('opened', fork))).toBe(0)
  expect(await hook.send('push', push({ branch: 'warmer', commits: touching(paths.other) }))).toBe(0)
  expect(await hook.send('pull_request', pullRequest('closed', fork))).toBe(0)
  expect(await hook.send('pull_request', pullRequest('opened', { number: 8, headRepository: null }))).toBe(0)
})

test('a branch does not inherit what is merged into it from the default one', async () => {
  const commits = [{ modified: [paths.other], distinct: false }, { modified: [paths.greeting] }]
  await hook.send('push', push({ branch: 'warmer', commits }))
  expect(await hook.send('pull_request', pullRequest('opened'))).toBe(1)
  expect(await hook.history('other')).toEqual([])
})

test('a branch that is used again after a merge starts over, but only for that base', async () => {
  await hook.send('push', toBranch())
  await hook.send('pull_request', merged())
  await hook.send('push', push({ branch: 'warmer', commits: touching(paths.farewell), at: '2026-11-14T15:00:00Z' }))
  expect(await hook.send('pull_request', pullRequest('opened', { number: 8 }))).toBe(1)
  expect(await hook.send('pull_request', pullRequest('opened', { number: 9, base: 'production' }))).toBe(2)
  expect((await hook.story('greeting')).map((line) => line.slice(0, 11))).toEqual(['pr_opened 9', 'pr_merged 7'])
})

test('a late push from before a merge is not merged with the next pull request of its branch', async () => {
  await hook.send('pull_request', merged())
  const next = { number: 8, headSha: sha('next'), createdAt: '2026-11-14T14:00:00Z', closedAt: '2026-11-14T15:00:00Z' }
  await hook.send('pull_request', pullRequest('opened', next))
  await hook.send('push', toBranch({ after: sha('late') }))
  await hook.send('pull_request', merged({ ...next, mergeSha: sha('next merge') }))
  expect(await hook.story('greeting')).toEqual([`pr_opened 7 ${sha('warmer')}`])
})

test('a recreated branch has nothing of its namesake, and a deleted one is still known', async () => {
  await hook.send('push', toBranch())
  await hook.send('push', push({ branch: 'warmer', deleted: true, at: '2026-11-14T12:10:00Z' }))
  expect(await hook.send('pull_request', pullRequest('opened'))).toBe(1)
  await hook.send('pull_request', pullRequest('closed', { closedAt: '2026-11-14T12:40:00Z' }))
  const recreated = { after: sha('recreated'), commits: touching(paths.other), at: '2026-11-14T12:50:00Z' }
  await hook.send('push', toBranch(recreated))
  expect(await hook.send('pull_request', pullRequest('opened', { number: 8, headSha: sha('recreated') }))).toBe(1)
  expect(await hook.story('other')).toEqual([`pr_opened 8 ${sha('recreated')}`])
})

test('what is merged into another branch goes on with the pull request of that branch', async () => {
  await hook.send('push', toBranch())
  await hook.send('pull_request', pullRequest('opened', { number: 8, head: 'develop' }))
  expect(await hook.send('pull_request', merged({ base: 'develop' }))).toBe(2)
  expect(await hook.story('greeting')).toEqual([`pr_opened 8 ${sha('merge')}`, `pr_merged 7 ${sha('merge')}`])
  const release = { number: 8, head: 'develop', mergeSha: sha('release') }
  expect(await hook.send('pull_request', merged(release))).toBe(1)
})

test('a repository without linked prompts leaves nothing behind', async () => {
  const elsewhere = { repository: 'acme/elsewhere' }
  await hook.send('push', toBranch(elsewhere))
  await hook.send('pull_request', pullRequest('opened', elsewhere))
  const { sql } = service.services.db
  const id = idOf('acme/elsewhere')
  const [left] = await sql`
    select
      (select count(*) from github_affected_prompts where repository_id = ${id}) as pushes,
      (select count(*) from github_pull_requests where repository_id = ${id}) as "pullRequests",
      (select count(*) from github_repositories where id = ${id}) as repositories`
  expect(left).toEqual({ pushes: 0, pullRequests: 0, repositories: 0 })
})
