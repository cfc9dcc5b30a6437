import { expect, test } from 'bun:test'
import { change, createHook, hookEachTest, paths } from './hook.ts'
import { push, sha } from './payloads.ts'

const { service, hook } = hookEachTest()

const expected = (more: object = {}) => ({
  action: 'deployed',
  user: { name: 'Ada Example', email: 'ada@example.com' },
  commit_sha: sha('direct'),
  pr_number: null,
  pr_url: null,
  branch_name: 'main',
  created_at: '2026-11-14T12:00:00.000Z',
  ...more,
})

test('a push to the default branch deploys each prompt whose file it adds, changes or removes', async () => {
  const commits = [{ id: sha('first'), added: [paths.greeting] }, { removed: [paths.farewell, 'README.md'] }]
  expect(await hook.push({ after: sha('direct'), commits })).toBe(2)
  expect(await hook.history('greeting')).toEqual([expected({ commit_sha: sha('first') })])
  expect(await hook.history('farewell')).toEqual([expected()])
  expect(await hook.history('other')).toEqual([])
  expect(await hook.push({ after: sha('next'), commits: [change] })).toBe(1)
  expect(await hook.story('greeting')).toEqual([`deployed null ${sha('first')}`, `deployed null ${sha('next')}`])
})

test('each commit that touches the file is an entry, with its own hash and author, in the order of the push', async () => {
  const author = (name: string) => ({ name, email: `${name}@example.com`, username: name })
  const commits = [
    { ...change, id: sha('one'), author: author('first') },
    { id: sha('two'), modified: [paths.other], author: author('another') },
    { ...change, id: sha('three'), author: author('last') },
  ]
  expect(await hook.push({ after: sha('three'), commits })).toBe(3)
  expect(await hook.history('greeting')).toEqual([
    expected({ commit_sha: sha('one'), user: { name: 'first', email: 'first@example.com' } }),
    expected({ commit_sha: sha('three'), user: { name: 'last', email: 'last@example.com' } }),
  ])
})

test.each([
  ['twenty days old', '2026-10-25T12:00:00Z'],
  ['ten years ahead', '2036-11-14T12:00:00Z'],
])('a commit whose clock is %s is deployed at the time of its push', async (_, madeAt) => {
  await hook.push({ after: sha('before'), commits: [change], at: '2026-11-14T11:00:00Z' })
  await hook.push({ after: sha('direct'), commits: [change], madeAt })
  await hook.push({ after: sha('after'), commits: [change], at: '2026-11-14T13:00:00Z' })
  expect(await hook.history('greeting')).toEqual([
    expected({ commit_sha: sha('before'), created_at: '2026-11-14T11:00:00.000Z' }),
    expected(),
    expected({ commit_sha: sha('after'), created_at: '2026-11-14T13:00:00.000Z' }),
  ])
})

test('repositories are compared without regard to letter case, paths exactly', async () => {
  const hook = await createHook(service, 'aCME/pROMPTS')
  expect(await hook.push({ repository: 'ACME/prompts', commits: [change] })).toBe(1)
  expect(await hook.push({ commits: [{ modified: ['Prompts/greeting.md'] }] })).toBe(0)
  expect(await hook.push({ repository: 'acme/other', commits: [change] })).toBe(0)
})

test('another organisation with the same file sees nothing of a commit, which counts even when it was pushed before', async () => {
  const other = await createHook(service)
  expect(await hook.push({ commits: [{ ...change, distinct: false }] })).toBe(1)
  expect(await other.history('greeting')).toEqual([])
})

test.each([
  ['a name of 300 characters', { name: 'x'.repeat(300), email: 'a@b.c' }, { name: 'x'.repeat(200), email: 'a@b.c' }],
  ['a name cut within a character', { name: `${'x'.repeat(199)}😀` }, { name: 'x'.repeat(199) }],
  ['control characters', { name: 'Ada\u0000\nB', email: 'a\u001b@b.c' }, { name: 'Ada B', email: 'a @b.c' }],
  ['half a character', { name: 'Ada\ud800' }, { name: 'Ada\ufffd' }],
  ['no address', { name: 'Ada', email: null, username: 'ada' }, { email: 'ada@users.noreply.github.com' }],
  ['an empty name', { name: '', email: 'a@b.c', username: 'ada' }, { name: 'ada', email: 'a@b.c' }],
  ['nothing', {}, { name: 'unknown', email: 'unknown@users.noreply.github.com' }],
])('an author with %s does not cost the entry', async (_, author, user) => {
  expect(await hook.push({ commits: [{ ...change, author }] })).toBe(1)
  expect((await hook.history('greeting'))[0]?.user).toMatchObject(user)
})

test.each([
  [undefined, 'missing'],
  ['yesterday', 'invalid'],
  [Date.parse('2036-11-14T12:00:00Z') / 1_000, 'ahead of now'],
])('a push time of %p, which is %s, is replaced by the time of arrival', async (pushed_at) => {
  service.clock.set('2026-11-15T01:02:03.004Z')
  const payload = push({ commits: [change] })
  await hook.send('push', { ...payload, repository: { ...payload.repository, pushed_at } })
  expect((await hook.history('greeting'))[0]?.created_at).toBe('2026-11-15T01:02:03.004Z')
})

// A payload has no parents, and lists for a merge commit the files that came from the other side.
const mergeMessages = [
  "Merge branch 'main' into warmer",
  "Merge branch 'main' of github.com:acme/prompts",
  "Merge branch 'main' of https://github.com/acme/prompts into warmer",
  "Merge remote-tracking branch 'origin/main'",
  "Merge branches 'a' and 'b'",
  "Merge tag 'v1.2'",
]

test.each(mergeMessages)('a merge does not count what others changed: %s', async (message) => {
  await hook.push({ branch: 'warmer', commits: [{ modified: [paths.farewell] }], created: true })
  await hook.pull('opened')
  await hook.push({ after: sha('theirs'), commits: [change] })
  const merge = { ...change, message }
  // A pull request takes the default branch in.
  const update = [{ ...change, id: sha('theirs'), distinct: false }, merge]
  await hook.push({ branch: 'warmer', after: sha('updated'), commits: update })
  await hook.merge({ headSha: sha('updated'), commits: 2 })
  // Somebody pulls before a push.
  const pulled = [{ id: sha('own'), modified: [paths.other] }, merge]
  expect(await hook.push({ after: sha('pulled'), commits: pulled })).toBe(1)
  expect(await hook.story('greeting')).toEqual([`deployed null ${sha('theirs')}`])
  expect(await hook.story('other')).toEqual([`deployed null ${sha('own')}`])
  expect((await hook.story('farewell')).map((line) => line.slice(0, 11))).toEqual(['pr_opened 7', 'pr_merged 7'])
})

test.each(['Merge the two greetings (#7)', 'Merge branch-specific words'])(
  'a plain commit whose title begins like that of a merge counts: %s',
  async (title) => {
    await hook.push({ after: sha('merge'), commits: [{ ...change, message: title }] })
    expect(await hook.story('greeting')).toEqual([`deployed null ${sha('merge')}`])
  },
)

test('a direct commit behind the squash of a pull request that changes the same prompt is deployed', async () => {
  await hook.push({ branch: 'warmer', after: sha('warmer'), commits: [change], created: true })
  await hook.merge()
  const commits = ['merge', 'direct'].map((name) => ({ ...change, id: sha(name) }))
  await hook.push({ after: sha('direct'), commits, at: '2026-11-14T13:00:00Z' })
  const story = await hook.story('greeting')
  expect(story.sort()).toEqual([`deployed null ${sha('direct')}`, `pr_merged 7 ${sha('merge')}`])
})
