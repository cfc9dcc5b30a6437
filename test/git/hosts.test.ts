// The host is part of a repository: what happens to acme/prompts at one host changes nothing of acme/prompts at another.
import { expect, test } from 'bun:test'
import { createHook, paths } from '../github/hook.ts'
import { idOf, push, repositoryEvent } from '../github/payloads.ts'
import { useService } from '../use.ts'
import { createClone, syncClone } from './clone.ts'

const service = useService()
const enterprise = 'github.example.com'
const path = paths.greeting

/** A prompt in the same file of Acme/Prompts at each of three hosts, and how many entries the history of each has. */
async function createPrompts() {
  const hook = await createHook(service)
  const create = (repository: string) => service.createPrompt(hook.tenant, repository, { file: { repository, path } })
  const ids = [
    hook.prompts.greeting,
    await create('git.example.com/acme/prompts'),
    await create(`${enterprise}/acme/prompts`),
  ]
  const counts = () =>
    Promise.all(ids.map(async (id) => (await service.getHistory(id, hook.tenant.key)).body.pagination.total_count))
  return { hook, ids, counts }
}

test.each([
  ['https://github.com/acme/prompts.git', [1, 0, 0]],
  ['git@github.com:acme/prompts.git', [1, 0, 0]],
  ['ssh://git@ssh.github.com:443/acme/prompts.git', [1, 0, 0]],
  ['https://git.example.com/Acme/Prompts.git', [0, 1, 0]],
  ['ssh://git@git.example.com:2222/acme/prompts', [0, 1, 0]],
])('a sync of %s writes only to the prompts linked there', async (origin, expected) => {
  const { hook, counts } = await createPrompts()
  const clone = createClone(origin)
  clone.change('Begin', path)
  const { key } = await service.createKey(hook.tenant, ['history:write', 'history:read', 'prompts:read'])
  await syncClone(clone, service.url, key)
  expect(await counts()).toEqual(expected)
})

test('a delivery of another GitHub server touches only its own, also with an id that GitHub uses too', async () => {
  const { hook, ids, counts } = await createPrompts()
  const at = (host: string, payload: { repository: { full_name: string } }) => {
    const html_url = `https://${host}/${payload.repository.full_name}`
    return { ...payload, repository: { ...payload.repository, html_url } }
  }
  const change = push({ commits: [{ modified: [path] }] })
  expect(await hook.send('push', at('github.com', change))).toBe(1)
  expect(await counts()).toEqual([1, 0, 0])
  expect(await hook.send('push', at(enterprise, change))).toBe(1)
  expect(await counts()).toEqual([1, 0, 1])
  expect((await hook.deliver('push', at('other.example.com', change))).body.data.outcome).toBe('unlinked_repository')

  await hook.send('repository', at(enterprise, repositoryEvent('renamed', 'Globex/Words', idOf('Acme/Prompts'))))
  const admin = await service.createKey(hook.tenant, ['prompts:read'])
  const shown = await Promise.all(ids.map(async (id) => (await service.get(`/prompts/${id}`, admin.key)).body.data))
  expect(shown.map(({ repository }) => repository)).toEqual([
    'acme/prompts',
    'git.example.com/acme/prompts',
    `${enterprise}/globex/words`,
  ])
})
