import { expect, test } from 'bun:test'
import { change, createHook, type Entry, hookEachTest, paths } from './hook.ts'
import { idOf, pullRequest, push, repositoryEvent, sha } from './payloads.ts'

const { service, hook } = hookEachTest()

const commits = [change]
const repositoryId = idOf('Acme/Prompts')
const later = '2026-11-14T13:00:00Z'
/** A push of the repository that was created as Acme/Prompts, under its current name. */
const deploys = (repository: string, more: object = {}) => hook.push({ commits, repository, repositoryId, ...more })

const repositories = (): Promise<(string | null)[]> =>
  Promise.all(
    Object.values(hook.prompts).map(
      async (id) => (await service.get(`/prompts/${id}`, hook.tenant.key)).body.data.repository,
    ),
  )

const moved = Array(3).fill('globex/words')
const unmoved = Array(3).fill('acme/prompts')

test.each([
  ['a push', 'push', push({ repository: 'Globex/Words', repositoryId, at: later })],
  ['a pull request', 'pull_request', pullRequest('labeled', { repository: 'Globex/Words', repositoryId })],
  ['a rename', 'repository', repositoryEvent('renamed', 'Globex/Words', repositoryId)],
])('links follow a known repository whose name is new in %s, and its old name is free', async (_, event, payload) => {
  await deploys('Acme/Prompts')
  expect(await hook.send(event, payload)).toBe(0)
  expect(await repositories()).toEqual(moved)
  expect(await deploys('Globex/Words', { at: later })).toBe(1)
  const stranger = await hook.deliver('push', push({ commits, repositoryId: 2 }))
  expect(stranger.body.data.outcome).toBe('unlinked_repository')
})

test('a pull request is not recorded for a prompt that was linked to another repository since its push', async () => {
  await hook.push({
    branch: 'warmer',
    after: sha('warmer'),
    commits: [{ modified: Object.values(paths) }],
    created: true,
  })
  const { key } = await service.createKey(hook.tenant, ['prompts:write'])
  const link = { repository: 'acme/other', path: paths.greeting }
  expect((await service.patch(`/prompts/${hook.prompts.greeting}`, key, link)).status).toBe(200)
  expect(await hook.pull('opened')).toBe(2)
  expect(await hook.merge()).toBe(2)
  expect(await hook.history('greeting')).toEqual([])
})

test('an unknown repository takes no links, whatever its event says', async () => {
  const { body } = await hook.deliver('repository', repositoryEvent('renamed', 'Globex/Words', repositoryId))
  expect(body.data.outcome).toBe('unlinked_repository')
  expect(await repositories()).toEqual(unmoved)
})

test('a late delivery with an old name is recorded, and does not bring the name back', async () => {
  await deploys('Acme/Prompts')
  await deploys('Globex/Words', { at: later })
  expect(await deploys('Acme/Prompts')).toBe(1)
  expect(await repositories()).toEqual(moved)
})

test('links follow a repository that was seen at a time in the future', async () => {
  service.clock.set('2026-11-14T12:30:00Z')
  await deploys('Acme/Prompts', { at: '2036-11-14T12:00:00Z' })
  service.clock.reset()
  await deploys('Globex/Words', { at: later })
  expect(await repositories()).toEqual(moved)
})

test('a name in other letter case changes nothing', async () => {
  await deploys('Acme/Prompts')
  expect(await deploys('ACME/prompts', { at: later })).toBe(1)
  expect(await repositories()).toEqual(unmoved)
})

test('a repository that is deleted and created again has another id, and keeps its links', async () => {
  await deploys('Acme/Prompts')
  expect(await hook.push({ commits, repositoryId: 1, at: later })).toBe(1)
  // The old repository has lost the name, and with it the links.
  await deploys('Globex/Words', { at: later })
  expect(await repositories()).toEqual(unmoved)
})

test('a pull request that is open meanwhile is merged under the new name', async () => {
  await deploys('Acme/Prompts', { branch: 'warmer', after: sha('warmer') })
  await hook.pull('opened')
  await deploys('Acme/Words', { branch: 'warmer', commits: [{ added: [paths.other] }], at: later })
  await hook.merge({ repository: 'Acme/Words', repositoryId })
  for (const name of ['greeting', 'other'] as const) {
    expect((await hook.history(name)).map(({ action }) => action)).toEqual(['pr_opened', 'pr_merged'])
  }
})

test('a file that is linked under the new name keeps its prompt; the other links are in the audit log', async () => {
  await deploys('Acme/Prompts')
  const { key } = await service.createKey(hook.tenant, ['prompts:write', 'keys:read'])
  await service.patch(`/prompts/${hook.prompts.other}`, key, { repository: 'acme/words', path: paths.greeting })
  await deploys('Acme/Words', { at: later })
  expect(await repositories()).toEqual(['acme/prompts', 'acme/words', 'acme/words'])
  expect(await hook.history('greeting')).toHaveLength(1)
  expect(await hook.history('other')).toHaveLength(1)

  const { body } = await service.get('/audit', key)
  const byGithub = body.data.filter(({ actor, details }: Entry) => actor === 'github' && details.repository)
  const details = { repository: 'acme/words', path: paths.farewell }
  expect(byGithub).toMatchObject([{ action: 'prompt.updated', subject: hook.prompts.farewell, details }])
})

test('the links of another organisation stay', async () => {
  const other = await createHook(service)
  await deploys('Acme/Prompts')
  await other.push({ commits })
  await deploys('Acme/Words', { at: later })
  expect(await other.push({ commits, at: later })).toBe(1)
})
