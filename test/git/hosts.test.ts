// The host is part of a repository: what happens to acme/prompts at one host changes nothing of acme/prompts at another.
import { expect, test } from 'bun:test'
import { scopes } from '../../src/lib/scopes.ts'
import { erasePrompt } from '../../src/prompts/erase.ts'
import { requirePrompt } from '../../src/prompts/find.ts'
import { invalid } from '../client.ts'
import { createHook, paths } from '../github/hook.ts'
import { idOf, push, repositoryEvent } from '../github/payloads.ts'
import { rejectionOf } from '../program.ts'
import { useService } from '../use.ts'
import { createClone, syncClone } from './clone.ts'

const service = useService()
const enterprise = 'github.example.com'
const path = paths.greeting

/** A prompt in the same file of Acme/Prompts at each of three hosts, and how many entries the history of each has. */
async function createPrompts() {
  const hook = await createHook(service)
  const create = (repository: string) => service.createPrompt(hook.tenant, repository, { repository, path })
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

test('prompts follow a project to another host by one command, which sync advises; erased ones stay away', async () => {
  const tenant = await service.createTenant()
  const { key } = await service.createKey(tenant, [...scopes])
  const clone = createClone('https://github.com/acme/prompts.git')
  for (const name of ['a', 'b', 'c']) clone.change(`Add ${name}`, `prompts/${name}.md`)
  const create = { createGlobs: ['prompts/*.md'] }
  const { map } = await syncClone(clone, service.url, key, create)
  const erased = await requirePrompt(service.services.db.sql, map['prompts/c.md'] as string)
  await erasePrompt(service.services.db, service.clock, erased)

  clone.git('remote', 'set-url', 'origin', 'https://gitlab.com/acme/team/prompts.git')
  const advice =
    'No prompt is linked to gitlab.com/acme/team/prompts, but 2 prompts to acme/prompts. If that was moved, run: ' +
    'prompt-signals repositories rename acme/prompts gitlab.com/acme/team/prompts --url https://example.com'
  expect(await rejectionOf(syncClone(clone, service.url, key))).toBe(advice)
  const fork = '. If it is a fork, link one prompt to gitlab.com/acme/team/prompts first.'
  expect(await rejectionOf(syncClone(clone, service.url, key, create))).toBe(`${advice}${fork}`)
  // One file has a prompt there already.
  const taken = { name: 'b', repository: 'gitlab.com/acme/team/prompts', path: 'prompts/b.md' }
  await service.post('/prompts', key, taken)
  const rename = (json: object) => service.post('/repositories/rename', key, json)
  const names = { old: 'Acme/Prompts', new: 'gitlab.com/acme/team/prompts' }
  expect((await rename(names)).body).toEqual({ data: { moved: 1, left: 1 } })
  const { body } = await service.get('/repositories', key)
  expect(body.data).toEqual([
    { repository: 'gitlab.com/acme/team/prompts', prompts: 2 },
    { repository: 'acme/prompts', prompts: 1 },
  ])
  expect((await syncClone(clone, service.url, key, create)).map).toMatchObject({ 'prompts/a.md': map['prompts/a.md'] })
  expect((await service.get('/erased-files', key)).body.data).toEqual([
    { repository: 'gitlab.com/acme/team/prompts', path: 'prompts/c.md' },
  ])
  const audit = (await service.get('/audit', key)).body.data
  const [row] = audit.filter(({ action }: { action: string }) => action === 'repository.renamed')
  expect(row).toMatchObject({ subject: tenant.org, details: { old: 'acme/prompts', new: names.new, prompts: 1 } })
  const host = 'must be owner/name on github.com, or host/path on any other host'
  expect(await rename({ ...names, old: 'acme' })).toMatchObject(invalid(['/old', host]))
  const unknown = 'must be a repository that prompts are linked to'
  expect(await rename({ ...names, old: 'acme/none' })).toMatchObject(invalid(['/old', unknown]))
})
