import { expect, test } from 'bun:test'
import { hookEachTest, paths } from './hook.ts'
import { type CommitGiven, push } from './payloads.ts'

const { service, hook } = hookEachTest()

/** What the organisation sees of the prompt's file; the list and the single prompt must agree. */
async function shown(): Promise<object> {
  const { key } = hook.tenant
  const id = hook.prompts.greeting
  const { body } = await service.get(`/prompts/${id}`, key)
  const list = await service.get('/prompts?limit=100', key)
  expect(list.body.data.find((prompt: { id: string }) => prompt.id === id)).toEqual(body.data)
  const { file_state, file_moved_to, last_entry_at } = body.data
  return { file_state, file_moved_to, last_entry_at }
}

const at = '2026-11-14T12:00:00Z'
const last_entry_at = '2026-11-14T12:00:00.000Z'
const seen = (file_state: string | null, file_moved_to: string | null = null) => ({
  file_state,
  file_moved_to,
  last_entry_at: file_state && last_entry_at,
})

const { greeting } = paths
const moved = 'words/greeting.md'

test.each<[string, CommitGiven[], object]>([
  ['changed', [{ modified: [greeting] }], seen('present')],
  ['added', [{ added: [greeting] }], seen('present')],
  ['removed', [{ removed: [greeting] }], seen('removed')],
  ['removed, and made again', [{ removed: [greeting] }, { added: [greeting] }], seen('present')],
  ['changed, and then removed', [{ modified: [greeting] }, { removed: [greeting] }], seen('removed')],
  ['renamed', [{ removed: [greeting], added: ['prompts/hello.md'] }], seen('renamed', 'prompts/hello.md')],
  ['moved with its folder', [{ removed: [greeting, 'a'], added: ['b', moved, 'c'] }], seen('renamed', moved)],
  ['removed where others come', [{ removed: [greeting], added: ['b', 'c'] }], seen('removed')],
  ['removed where two may be it', [{ removed: [greeting], added: [moved, 'x/greeting.md'] }], seen('removed')],
])('a file that is %s', async (_, commits, expected) => {
  expect(await shown()).toEqual(seen(null))
  await hook.push({ commits, at })
  expect(await shown()).toEqual(expected)
})

test('under its new name a renamed file is no prompt’s, until the link is moved', async () => {
  const hello = 'prompts/hello.md'
  await hook.push({ commits: [{ removed: [greeting], added: [hello] }], at })
  const later = push({ commits: [{ modified: [hello] }], at: '2026-11-14T13:00:00Z' })
  const { body } = await hook.deliver('push', later)
  expect(body.data).toMatchObject({ recorded: 0, outcome: 'unlinked_files' })
  expect(await shown()).toEqual(seen('renamed', hello))
})

test('only the default branch counts, and a push from before the last does not', async () => {
  await hook.push({ branch: 'warmer', commits: [{ removed: [greeting] }], at: '2026-11-14T13:00:00Z' })
  expect(await shown()).toEqual(seen(null))
  await hook.push({ commits: [{ modified: [greeting] }], at })
  await hook.push({ commits: [{ removed: [greeting] }], at: '2026-11-14T11:00:00Z' })
  expect(await shown()).toEqual(seen('present'))
})

test('what was seen of a file is forgotten when the prompt is linked to another, and not when it is renamed', async () => {
  const { key } = await service.createKey(hook.tenant, ['prompts:read', 'prompts:write', 'history:write'])
  const id = hook.prompts.greeting
  await hook.push({ commits: [{ removed: [greeting] }], at })
  const renamed = await service.patch(`/prompts/${id}`, key, { name: 'Hello' })
  expect(renamed.body.data).toMatchObject(seen('removed'))
  await service.patch(`/prompts/${id}`, key, { repository: 'acme/prompts', path: moved })
  expect(await shown()).toEqual({ ...seen(null), last_entry_at })
  // Nothing of the other file is left to be newer than this.
  const files = [{ prompt_id: id, state: 'present', seen_at: '2026-11-14T11:00:00Z' }]
  await service.post('/history/batch', key, { entries: [], files })
  expect(await shown()).toEqual(seen('present'))
})
