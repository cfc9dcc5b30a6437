import { expect, test } from 'bun:test'
import { isInWindow, windowOf } from '../../src/github/push.ts'
import { hookEachTest, paths, permutationsOf } from './hook.ts'
import { idOf, merged, mergedEntry, opened, pullRequest, push, sha } from './payloads.ts'

const { service, hook } = hookEachTest()

const fork = { headRepository: 'somebody/prompts' }
const touching = (...files: string[]) => [{ modified: files }]
const pushBranch = (more: object = {}) =>
  hook.push({ branch: 'warmer', after: sha('warmer'), commits: touching(paths.greeting), created: true, ...more })

async function open(): Promise<void> {
  await pushBranch()
  await hook.pull('opened')
}

test('a pull request is recorded for every prompt that was pushed to its branch, and for no other', async () => {
  await pushBranch()
  await hook.push({ branch: 'warmer', commits: touching(paths.farewell) })
  await hook.push({ branch: 'cooler', commits: touching(paths.other) })
  expect(await hook.pull('opened')).toBe(2)
  expect(await hook.merge()).toBe(2)
  expect(await hook.history('greeting')).toEqual([opened, mergedEntry])
  expect(await hook.history('farewell')).toEqual([opened, mergedEntry])
  expect(await hook.history('other')).toEqual([])
})

test('a deleted account is shown as ghost, and an unknown merger as the author', async () => {
  await pushBranch()
  await hook.pull('opened', { user: null })
  const payload = merged()
  await hook.send('pull_request', { ...payload, pull_request: { ...payload.pull_request, merged_by: null } })
  expect((await hook.history('greeting')).map(({ user }) => user.name)).toEqual(['ghost', 'ada'])
})

test('a push that brings a prompt into an open pull request opens it for that prompt, once', async () => {
  await open()
  const more = push({ branch: 'warmer', after: sha('more'), commits: touching(paths.greeting, paths.farewell) })
  expect(await hook.send('push', more)).toBe(1)
  expect(await hook.send('push', { ...more, after: sha('again') })).toBe(0)
  expect(await hook.history('farewell')).toEqual([opened])
  expect(await hook.merge()).toBe(2)
})

test('a merge whose time is ahead of now is merged at the time of its arrival', async () => {
  service.clock.set('2026-11-15T01:02:03.004Z')
  await open()
  await hook.merge({ closedAt: '2036-11-14T12:00:00Z' })
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
    await open()
    for (const name of order) await hook.send('pull_request', events[name])
    const story = (await hook.history('greeting')).map(
      ({ action, created_at }) => `${action} ${created_at.slice(11, 16)}`,
    )
    expect(story).toEqual(['pr_opened 12:30', 'pr_closed 14:00', 'pr_closed 15:00'])
    const later = { branch: 'warmer', commits: touching(paths.other), at: '2026-11-14T15:30:00Z' }
    expect(await hook.push(later)).toBe(0)
    await hook.merge({ closedAt: '2026-11-14T16:00:00Z' })
    expect((await hook.story('greeting')).at(-1)).toBe(`pr_merged 7 ${sha('merge')}`)
  },
)

test('a merge is the last event, whatever is delivered after it', async () => {
  const closedAt = '2026-11-14T13:00:00Z'
  await open()
  await hook.merge({ closedAt })
  await hook.pull('reopened', { updatedAt: closedAt })
  const commits = [{ id: sha('warmer'), ...touching(paths.greeting)[0] }, { id: sha('merge') }]
  expect(await hook.push({ after: sha('merge'), commits, at: closedAt })).toBe(0)
  expect(await hook.history('greeting')).toEqual([opened, mergedEntry])
})

test('what was pushed while it was closed counts when it is reopened', async () => {
  await hook.pull('opened')
  await hook.pull('closed', { closedAt: '2026-11-14T14:00:00Z' })
  expect(await pushBranch({ after: sha('later'), at: '2026-11-14T15:00:00Z' })).toBe(0)
  expect(
    await hook.send(
      'pull_request',
      pullRequest('reopened', { headSha: sha('later'), updatedAt: '2026-11-14T16:00:00Z' }),
    ),
  ).toBe(1)
  expect(await hook.story('greeting')).toEqual([`pr_opened 7 ${sha('warmer')}`])
})

test.each(permutationsOf(['first', 'opening', 'second', 'closing'] as const).map((order) => [order]))(
  'a closed pull request is opened and closed once for each prompt: %j',
  async (order) => {
    const files = touching(paths.greeting, paths.farewell)
    const second = { branch: 'warmer', after: sha('second'), commits: files, at: '2026-11-14T13:00:00Z' }
    const deliveries = {
      first: () => pushBranch({ commits: touching(paths.greeting, paths.other) }),
      opening: () => hook.pull('opened'),
      second: () => hook.push(second),
      closing: () => hook.pull('closed', { headSha: sha('second'), closedAt: '2026-11-14T14:00:00Z' }),
    }
    for (const name of order) await deliveries[name]()
    for (const prompt of ['greeting', 'farewell', 'other'] as const) {
      expect((await hook.history(prompt)).map(({ action }) => action)).toEqual(['pr_opened', 'pr_closed'])
    }
  },
)

test('the branch of a fork is not mistaken for ours of the same name', async () => {
  await pushBranch()
  expect(await hook.pull('opened', fork)).toBe(0)
  expect(await hook.push({ branch: 'warmer', commits: touching(paths.other) })).toBe(0)
  expect(await hook.pull('closed', fork)).toBe(0)
  expect(await hook.pull('opened', { number: 8, headRepository: null })).toBe(0)
})

test('a branch does not inherit what is merged into it from the default one', async () => {
  const commits = [{ modified: [paths.other], distinct: false }, { modified: [paths.greeting] }]
  await hook.push({ branch: 'warmer', commits })
  expect(await hook.pull('opened')).toBe(1)
  expect(await hook.history('other')).toEqual([])
})

test('a branch that is used again after a merge starts over, but only for that base', async () => {
  await pushBranch()
  await hook.merge()
  await hook.push({ branch: 'warmer', commits: touching(paths.farewell), at: '2026-11-14T15:00:00Z' })
  expect(await hook.pull('opened', { number: 8 })).toBe(1)
  expect(await hook.pull('opened', { number: 9, base: 'production' })).toBe(2)
  expect((await hook.story('greeting')).map((line) => line.slice(0, 11))).toEqual(['pr_opened 9', 'pr_merged 7'])
})

test('a branch that is merged again does not bring what it brought before, though that merge event is lost', async () => {
  const first = [{ ...touching(paths.greeting)[0], id: sha('warmer'), distinct: false }, { id: sha('merge') }]
  const second = { number: 8, headSha: sha('more'), createdAt: '2026-11-14T14:00:00Z' }
  await open()
  await hook.push({ after: sha('merge'), commits: first, at: '2026-11-14T13:00:00Z' })
  const more = { branch: 'warmer', after: sha('more'), commits: touching(paths.farewell), at: '2026-11-14T13:30:00Z' }
  await hook.push(more)
  await hook.pull('opened', second)
  await hook.merge({ ...second, mergeSha: sha('merge 8'), closedAt: '2026-11-14T15:00:00Z' })
  expect(await hook.story('greeting')).toEqual([`pr_opened 7 ${sha('warmer')}`, `deployed null ${sha('warmer')}`])
  await hook.merge()
  expect(await hook.story('greeting')).toEqual([`pr_opened 7 ${sha('warmer')}`, `pr_merged 7 ${sha('merge')}`])
  expect(await hook.story('farewell')).toContain(`pr_merged 8 ${sha('merge 8')}`)
})

test('a late push from before a merge is not merged with the next pull request of its branch', async () => {
  await hook.merge()
  const next = { number: 8, headSha: sha('next'), createdAt: '2026-11-14T14:00:00Z', closedAt: '2026-11-14T15:00:00Z' }
  await hook.pull('opened', next)
  await pushBranch({ after: sha('late') })
  await hook.merge({ ...next, mergeSha: sha('next merge') })
  expect(await hook.story('greeting')).toEqual([])
})

test('a recreated branch has nothing of its namesake, and a deleted one is still known', async () => {
  await pushBranch()
  await hook.push({ branch: 'warmer', deleted: true, at: '2026-11-14T12:10:00Z' })
  expect(await hook.pull('opened')).toBe(1)
  await hook.pull('closed', { closedAt: '2026-11-14T12:40:00Z' })
  await pushBranch({ after: sha('recreated'), commits: touching(paths.other), at: '2026-11-14T12:50:00Z' })
  expect(await hook.pull('opened', { number: 8, headSha: sha('recreated') })).toBe(1)
  expect(await hook.story('other')).toEqual([`pr_opened 8 ${sha('recreated')}`])
})

test('what is merged into another branch goes on with the pull request of that branch', async () => {
  await pushBranch()
  await hook.pull('opened', { number: 8, head: 'develop' })
  expect(await hook.merge({ base: 'develop' })).toBe(2)
  expect(await hook.story('greeting')).toEqual([`pr_opened 8 ${sha('develop')}`, `pr_merged 7 ${sha('merge')}`])
  const release = { number: 8, head: 'develop', mergeSha: sha('release') }
  expect(await hook.merge(release)).toBe(1)
})

test('a repository without linked prompts leaves nothing behind', async () => {
  const elsewhere = { repository: 'acme/elsewhere' }
  await pushBranch(elsewhere)
  await hook.pull('opened', elsewhere)
  const id = idOf('acme/elsewhere')
  const [left] = await service.services.db.sql`
    select
      (select count(*) from github_affected_prompts where repository_id = ${id}) as pushes,
      (select count(*) from github_pull_requests where repository_id = ${id}) as "pullRequests",
      (select count(*) from github_repositories where id = ${id}) as repositories`
  expect(left).toEqual({ pushes: 0, pullRequests: 0, repositories: 0 })
})

const use = (number: number, state: string, closedAt: string | null, base_branch = 'main') => ({
  ...{ number, state: state as 'open' | 'merged' | 'closed', base_branch, head_branch: 'warmer', head_sha: 'head' },
  opened_at: new Date('2026-01-01T09:00Z'),
  closed_at: closedAt === null ? null : new Date(`2026-01-01T${closedAt}Z`),
})

test.each<[string, ReturnType<typeof use>, ReturnType<typeof use>[], string]>([
  ['open for the first time: all', use(2, 'open', null), [], '10 11 12 13 14'],
  ['closed: those before', use(2, 'closed', '12:00'), [], '10 11 12'],
  ['after a merge into the same base: those since', use(2, 'open', null), [use(1, 'merged', '11:00')], '12 13 14'],
  ['after a merge into another base: all', use(2, 'open', null), [use(1, 'merged', '11:00', 'dev')], '10 11 12 13 14'],
  ['after it was closed unmerged: all', use(2, 'open', null), [use(1, 'closed', '11:00')], '10 11 12 13 14'],
  ['merged before a later merge: those before', use(2, 'merged', '12:00'), [use(3, 'merged', '13:00')], '10 11 12'],
  ['between two merges', use(2, 'merged', '13:00'), [use(1, 'merged', '10:00'), use(3, 'merged', '14:00')], '11 12 13'],
])('of the pushes to its branch, a pull request has, %s', (_, pr, others, expected) => {
  const window = windowOf(pr, [...others, pr])
  const at = (hour: string) => new Date(`2026-01-01T${hour}:00Z`)
  const hours = ['10', '11', '12', '13', '14'].filter((hour) => isInWindow({ at: at(hour), commitSha: hour }, window))
  expect(hours.join(' ')).toBe(expected)
  // A push may arrive after the end, at the latest with the head of the pull request.
  expect(isInWindow({ at: at('15'), commitSha: 'head' }, window)).toBeTrue()
})
