import { expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { listAudit } from '../../src/audit/list.ts'
import { requirePrompt } from '../../src/prompts/find.ts'
import { changePrompt } from '../../src/prompts/manage.ts'
import { createHook, hookEachTest, paths } from './hook.ts'
import { merged, pullRequest, push, renamed, repositoryEvent, sha, transferred } from './payloads.ts'

const { service, hook } = hookEachTest()

const change = { commits: [{ modified: [paths.greeting] }] }
const deploys = (repository: string) => hook.send('push', push({ ...change, repository }))

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
])('prompts follow a repository that is %s', async (_, repository, payload) => {
  expect(await deploys(repository)).toBe(0)
  expect(await hook.send('repository', payload)).toBe(0)
  expect(await deploys(repository)).toBe(1)
  expect(await deploys('Acme/Prompts')).toBe(0)
})

test('a pull request that is open meanwhile is merged under the new name', async () => {
  await hook.send('push', push({ ...change, branch: 'warmer', after: sha('warmer') }))
  await hook.send('pull_request', pullRequest('opened'))
  await hook.send('repository', renamed('Acme/Words', 'Prompts'))
  await hook.send('push', push({ branch: 'warmer', repository: 'Acme/Words', commits: [{ added: [paths.other] }] }))
  await hook.send('pull_request', merged({ repository: 'Acme/Words' }))
  const actions = async (name: keyof typeof paths) => (await hook.history(name)).map(({ action }) => action)
  expect([await actions('greeting'), await actions('other')]).toEqual(Array(2).fill(['pr_opened', 'pr_merged']))
})

test('sent again, it takes nothing from a new repository of the old name', async () => {
  await hook.send('repository', renamed('Acme/Words', 'Prompts'))
  await hook.send('repository', renamed('Acme/Words', 'Prompts'))
  expect(await deploys('Acme/Words')).toBe(1)

  const delivery = randomUUID()
  await hook.send('repository', renamed('Acme/Texts', 'Words'), { delivery })
  await link(hook.prompts.greeting, paths.greeting)
  await hook.send('repository', renamed('Acme/Texts', 'Words'), { delivery })
  expect(await deploys('Acme/Words')).toBe(1)
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
  await hook.send('push', push({ repository: 'Acme/Words', commits: [{ removed: [paths.farewell] }] }))
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
