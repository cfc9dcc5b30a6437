import { expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { listAudit } from '../../src/audit/list.ts'
import { requirePrompt } from '../../src/prompts/find.ts'
import { changePrompt, listAllPrompts } from '../../src/prompts/manage.ts'
import { createHook, hookEachTest, paths } from './hook.ts'
import {
  idOf,
  merged,
  organizationRenamed,
  pullRequest,
  push,
  renamed,
  repositoryEvent,
  sha,
  transferred,
} from './payloads.ts'

const { service, hook } = hookEachTest()

const change = { commits: [{ modified: [paths.greeting] }] }
/** A push of the repository that was made as Acme/Prompts, under the name that it bears. */
const deploys = (repository: string, more: object = {}) =>
  hook.send('push', push({ ...change, repository, repositoryId: idOf('Acme/Prompts'), ...more }))

async function repositories(): Promise<(string | null)[]> {
  const prompts = await listAllPrompts(service.services.db, hook.tenant.org)
  return Object.values(hook.prompts).map((id) => prompts.find((prompt) => prompt.id === id)?.repository ?? null)
}

async function link(prompt: string, path: string): Promise<void> {
  const { db, clock } = service.services
  await changePrompt(db, clock, await requirePrompt(db.sql, prompt), { file: { repository: 'acme/words', path } })
}

test.each([
  ['renamed', 'Acme/Words', renamed('Acme/Words', 'Prompts')],
  ['transferred from a user', 'Globex/Prompts', transferred('Globex/Prompts', { login: 'Acme', id: 7 })],
  [
    'transferred from an organisation',
    'Globex/Prompts',
    transferred('Globex/Prompts', { login: 'Acme', id: 7 }, 'organization'),
  ],
])('prompts follow a repository that is %s, seen before or not', async (_, repository, payload) => {
  for (const isSeen of [false, true]) {
    Object.assign(hook, await createHook(service))
    if (isSeen) expect(await deploys('Acme/Prompts')).toBe(1)
    expect(await hook.send('repository', payload)).toBe(0)
    expect(await deploys(repository, { at: '2026-11-14T13:00:00Z' })).toBe(1)
    // Another one that is made under the old name is a stranger.
    expect(await hook.send('push', push({ ...change, repositoryId: 2 }))).toBe(0)
  }
})

test('prompts follow a repository that bears another name, also if no event has said so', async () => {
  await deploys('Acme/Prompts')
  expect(await deploys('Globex/Words', { at: '2026-11-14T13:00:00Z' })).toBe(1)
  // Sent again from before, it has the old name, and is still of the same repository.
  expect(await deploys('Acme/Prompts')).toBe(1)
  expect(await repositories()).toEqual(Array(3).fill('globex/words'))
})

test('a repository that is deleted and made again has another id, and keeps its links', async () => {
  await deploys('Acme/Prompts')
  expect(await hook.send('push', push({ ...change, repositoryId: 1, at: '2026-11-14T13:00:00Z' }))).toBe(1)
})

test('prompts follow an organisation of GitHub that is renamed, in all its repositories', async () => {
  await link(hook.prompts.other, paths.other)
  const delivery = randomUUID()
  expect(await hook.send('organization', organizationRenamed('Globex', 'Acme'), { delivery })).toBe(0)
  expect(await repositories()).toEqual(['globex/prompts', 'globex/prompts', 'globex/words'])
  expect(await deploys('Globex/Prompts', { at: '2026-11-14T13:00:00Z' })).toBe(1)
  await link(hook.prompts.other, paths.other)
  await hook.send('organization', organizationRenamed('Globex', 'Acme'), { delivery })
  expect(await repositories()).toEqual(['globex/prompts', 'globex/prompts', 'acme/words'])
})

test.each([
  ['before the last one that was delivered', '2026-11-14T11:30:00Z'],
  ['after it', '2026-11-14T12:30:00Z'],
])('a late push from before its owner was renamed, and %s, is of the same repository', async (_, at) => {
  expect(await deploys('Acme/Prompts')).toBe(1)
  await hook.send('organization', organizationRenamed('Globex', 'Acme'))
  expect(await deploys('Acme/Prompts', { at })).toBe(1)
  expect(await repositories()).toEqual(Array(3).fill('globex/prompts'))
  expect(await deploys('Globex/Prompts', { at: '2026-11-14T13:00:00Z' })).toBe(1)
})

test('the repositories of an owner who was renamed take the names of others that bore them before', async () => {
  await hook.send('push', push({ ...change, repositoryId: 1 }))
  await hook.send('organization', organizationRenamed('Globex', 'Acme'))
  await link(hook.prompts.other, paths.other)
  const words = { repository: 'Acme/Words', commits: [{ modified: [paths.other] }] }
  expect(await hook.send('push', push(words))).toBe(1)
  await hook.send('repository', renamed('Acme/Prompts', 'Words', idOf('Acme/Words')))
  await hook.send('organization', organizationRenamed('Globex', 'Acme'))
  expect(await repositories()).toEqual(Array(3).fill('globex/prompts'))
  expect(await hook.send('push', push(words))).toBe(1)
})

test.each([
  ['of a like name', organizationRenamed('Globex', 'Ac')],
  ['that is renamed in letter case alone', organizationRenamed('ACME', 'Acme')],
  ['that has a new member', { action: 'member_added', organization: { login: 'Acme', id: 1 } }],
])('an organisation of GitHub %s moves nothing', async (_, payload) => {
  await hook.send('organization', payload)
  expect(await repositories()).toEqual(Array(3).fill('acme/prompts'))
})

test('a pull request that is open meanwhile is merged under the new name', async () => {
  await hook.send('push', push({ ...change, branch: 'warmer', after: sha('warmer') }))
  await hook.send('pull_request', pullRequest('opened'))
  await hook.send('repository', renamed('Acme/Words', 'Prompts'))
  await deploys('Acme/Words', { branch: 'warmer', commits: [{ added: [paths.other] }] })
  await hook.send('pull_request', merged({ repository: 'Acme/Words', repositoryId: idOf('Acme/Prompts') }))
  const actions = async (name: keyof typeof paths) => (await hook.history(name)).map(({ action }) => action)
  expect([await actions('greeting'), await actions('other')]).toEqual(Array(2).fill(['pr_opened', 'pr_merged']))
})

test('sent again, it takes nothing from a new repository of the old name', async () => {
  await hook.send('repository', renamed('Acme/Words', 'Prompts'))
  await hook.send('repository', renamed('Acme/Words', 'Prompts'))
  expect(await deploys('Acme/Words')).toBe(1)

  const again = renamed('Acme/Texts', 'Words', idOf('Acme/Prompts'))
  await hook.send('repository', again)
  await link(hook.prompts.greeting, paths.greeting)
  await hook.send('repository', again)
  expect(await hook.send('push', push({ ...change, repository: 'Acme/Words' }))).toBe(1)
})

test('a file that is linked under the new name already keeps its prompt', async () => {
  await link(hook.prompts.other, paths.greeting)
  await hook.send('push', push({ ...change, repository: 'Acme/Words', branch: 'warmer' }))
  await hook.send('push', push({ ...change, branch: 'warmer' }))
  for (const repository of ['Acme/Words', 'Acme/Prompts']) {
    await hook.send('pull_request', pullRequest('closed', { repository, closedAt: '2026-11-14T14:00:00Z' }))
  }
  const before = [await hook.history('greeting'), await hook.history('other')]
  expect(before).toMatchObject([[{ action: 'pr_closed' }], [{ action: 'pr_closed' }]])
  await hook.send('repository', renamed('Acme/Words', 'Prompts'))
  await deploys('Acme/Words')
  expect(await hook.history('greeting')).toEqual(before[0] as object[])
  expect((await hook.history('other')).map(({ action }) => action).sort()).toEqual(['deployed', 'pr_closed'])
  await deploys('Acme/Words', { commits: [{ removed: [paths.farewell] }] })
  expect(await hook.history('farewell')).toHaveLength(1)
})

test('each link that follows is in the audit log, as a change of GitHub', async () => {
  await link(hook.prompts.other, paths.greeting)
  await hook.send('repository', renamed('Acme/Words', 'Prompts'))
  const { db } = service.services
  const { organisationId } = await requirePrompt(db.sql, hook.prompts.farewell)
  const { data } = await listAudit(db, organisationId, { limit: 100, cursor: null })
  const moved = data.filter(({ actor }) => actor === 'github').map(({ id: _, created_at: __, ...entry }) => entry)
  expect(moved).toEqual([
    {
      actor: 'github',
      action: 'prompt.updated',
      subject: hook.prompts.farewell,
      details: { repository: 'acme/words', path: paths.farewell },
    },
  ])
})

test('the links of another organisation stay', async () => {
  const other = await createHook(service)
  await hook.send('repository', renamed('Acme/Words', 'Prompts'))
  expect(await other.send('push', push(change))).toBe(1)
})

test.each([
  ['renamed in letter case alone', renamed('acme/prompts', 'Prompts')],
  ['edited', repositoryEvent('edited', 'Acme/Words', { description: { from: null } })],
  ['renamed from nowhere', repositoryEvent('renamed', 'Acme/Words')],
  ['transferred from nobody', repositoryEvent('transferred', 'Globex/Prompts', { owner: { from: {} } })],
])('a repository that is %s keeps its links', async (_, payload) => {
  expect(await hook.send('repository', payload)).toBe(0)
  expect(await deploys('Acme/Prompts')).toBe(1)
})
