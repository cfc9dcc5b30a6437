// Prompts over REST, within the caller's own organisation.
import { beforeAll, expect, test } from 'bun:test'
import { scopes } from '../../src/http/caller.ts'
import { createKey } from '../../src/keys/manage.ts'
import type { Answer } from '../client.ts'
import type { Tenant } from '../service.ts'
import { useService, useTenant } from '../use.ts'

const service = useService()
const tenant = useTenant(service)
let admin: { key: string; id: string }

beforeAll(async () => {
  admin = await makeAdmin(tenant)
})

const makeAdmin = ({ org }: Tenant) =>
  createKey(service.services.db, service.clock, { org, name: 'admin', scopes: [...scopes], expiresAt: null })

const call = (method: string, path: string, json?: unknown, key = admin.key, headers: Record<string, string> = {}) =>
  service.call(method, `/api/v1${path}`, { key, headers, ...(json === undefined ? {} : { json }) })

const auditOf = async (subject: string) => {
  const { body } = await call('GET', '/audit?limit=100')
  return body.data
    .filter((entry: { subject: string }) => entry.subject === subject)
    .map(({ actor, action, details }: Record<string, unknown>) => ({ actor, action, details }))
}

const unlinked = { repository: null, path: null, file_state: null, file_moved_to: null, last_entry_at: null }
const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

test('a prompt is made, used, shown, changed, linked and unlinked; the audit log has each change once', async () => {
  const made = await call('POST', '/prompts', { name: ' Greeting ' })
  const { id } = made.body.data
  const prompt = { id: expect.stringMatching(/^pmt_[0-9A-Za-z]{16}$/), name: 'Greeting', created_at: time }
  expect([made.status, made.body]).toEqual([201, { data: { ...prompt, ...unlinked } }])
  expect((await service.postSignal(id, tenant.key)).status).toBe(201)
  expect((await call('GET', `/prompts/${id}`)).body).toEqual(made.body)

  const link = { repository: 'Acme/Prompts', path: './prompts/greeting.md' }
  const linked = { ...made.body.data, repository: 'acme/prompts', path: 'prompts/greeting.md' }
  expect((await call('PATCH', `/prompts/${id}`, link)).body).toEqual({ data: linked })
  const renamed = await call('PATCH', `/prompts/${id}`, { name: 'Warm greeting' })
  expect([renamed.status, renamed.body]).toEqual([200, { data: { ...linked, name: 'Warm greeting' } }])
  const without = await call('PATCH', `/prompts/${id}`, { repository: null, path: null })
  expect(without.body).toEqual({ data: { ...made.body.data, name: 'Warm greeting' } })
  // Neither of these changes anything.
  for (const same of [{}, { name: 'Warm greeting', repository: null, path: null }]) {
    expect((await call('PATCH', `/prompts/${id}`, same)).body).toEqual(without.body)
  }
  expect((await call('GET', `/prompts/${id}`)).body).toEqual(without.body)
  const by = { actor: admin.id, action: 'prompt.updated' }
  expect(await auditOf(id)).toEqual([
    { ...by, details: { repository: null, path: null } },
    { ...by, details: { name: 'Warm greeting' } },
    { ...by, details: { repository: 'acme/prompts', path: 'prompts/greeting.md' } },
    { actor: admin.id, action: 'prompt.created', details: { name: 'Greeting', repository: null, path: null } },
  ])
})

test('a prompt may bring its own id and link; neither can be taken twice, also by a change', async () => {
  const given = { id: 'pmt_own-1', name: 'Own', repository: 'acme/own', path: 'own.md' }
  expect((await call('POST', '/prompts', given)).body).toEqual({ data: { ...unlinked, ...given, created_at: time } })
  const taken = (answer: Answer) => [answer.status, answer.body.error.details[0].path, answer.body.error.message]
  const other = { name: 'Other', repository: 'ACME/own', path: 'own.md' }
  expect(taken(await call('POST', '/prompts', { ...other, path: 'b.md', id: 'pmt_own-1' }))).toEqual([
    422,
    '/id',
    'The id pmt_own-1 is taken.',
  ])
  const isLinked = [422, '/path', 'own.md in acme/own is already linked to pmt_own-1.']
  expect(taken(await call('POST', '/prompts', other))).toEqual(isLinked)
  expect(taken(await call('PATCH', `/prompts/${tenant.prompt}`, { repository: 'acme/own', path: 'own.md' }))).toEqual(
    isLinked,
  )
  expect(await auditOf(tenant.prompt)).toMatchObject([{ actor: 'cli', action: 'prompt.created' }])
})

test('of ten that link different prompts to one file at once, one does', async () => {
  const ids = await Promise.all(
    Array.from({ length: 10 }, async (_, index) => {
      return (await call('POST', '/prompts', { name: `racing ${index}` })).body.data.id as string
    }),
  )
  const link = { repository: 'acme/race', path: 'race.md' }
  const answers = await Promise.all(ids.map((id) => call('PATCH', `/prompts/${id}`, link)))
  expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(9).fill(422)])
})

test('a path of as many bytes as an index can hold is linked, and one byte more is rejected', async () => {
  // Nothing in it comes again, so that Postgres cannot compress it.
  const letters = Array.from({ length: 333 }, (_, index) => String.fromCodePoint(0x4e00 + ((index * 7919) % 20_000)))
  const repository = Array.from({ length: 10 }, (_, index) => `${index}`.repeat(100)).join('/')
  const path = `${letters.join('')}x`
  const link = (given: string) => call('POST', '/prompts', { name: 'long', repository, path: given })
  expect((await link(path)).body.data).toMatchObject({ repository, path })
  const { status, body } = await link(`${path}y`)
  expect([status, body.error.details?.[0]?.path]).toEqual([422, '/path'])
  expect((await link(letters.join('').repeat(3))).status).toBe(422)
})

test("another organisation's prompt is answered with the bytes of one that does not exist", async () => {
  const other = await service.createTenant()
  const hide = ({ text, headers }: Answer) => text.replaceAll(headers.get('x-request-id') as string, 'ID')
  for (const [method, json] of [
    ['GET', undefined],
    ['PATCH', { name: 'mine' }],
    ['PATCH', { name: 7 }],
  ] as const) {
    const [theirs, none] = [
      await call(method, `/prompts/${other.prompt}`, json),
      await call(method, '/prompts/pmt_none', json),
    ]
    expect([theirs.status, hide(theirs)]).toEqual([404, hide(none)])
  }
  const { key } = await makeAdmin(other)
  expect((await call('GET', `/prompts/${other.prompt}`, undefined, key)).body.data.name).toBe('test')
  const listed = (await call('GET', '/prompts?limit=100')).body.data.map(({ id }: { id: string }) => id)
  expect(listed).not.toContain(other.prompt)
})

test('a prompt made twice by a retry is one prompt', async () => {
  const headers = { 'idempotency-key': 'prompt' }
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => call('POST', '/prompts', { name: 'once', id: 'pmt_once' }, admin.key, headers)),
  )
  expect(answers.map(({ status, body }) => [status, body])).toEqual(
    Array(5).fill([201, { data: { id: 'pmt_once', name: 'once', ...unlinked, created_at: time } }]),
  )
  expect(answers.filter(({ headers }) => !headers.has('idempotent-replayed'))).toHaveLength(1)
  const conflict = await call('POST', '/prompts', { name: 'twice' }, admin.key, headers)
  expect(conflict).toMatchObject({ status: 422, body: { error: { details: [{ path: 'Idempotency-Key' }] } } })
})

test.each([
  ['no name', {}, '/name'],
  ['a blank name', { name: ' ' }, '/name'],
  ['a name with a line break', { name: 'a\nb' }, '/name'],
  ['an odd id', { name: 'x', id: 'greeting' }, '/id'],
  ['a repository alone', { name: 'x', repository: 'a/b' }, '/path'],
  ['a path alone', { name: 'x', path: 'a.md' }, '/repository'],
  ['a path beside no repository', { name: 'x', repository: null, path: 'a.md' }, '/repository'],
  ['a repository that is an address', { name: 'x', repository: 'https://github.com/a/b', path: 'a' }, '/repository'],
  ['a repository without its owner', { name: 'x', repository: 'b', path: 'a' }, '/repository'],
  ['a path that leaves the repository', { name: 'x', repository: 'a/b', path: '../a' }, '/path'],
  ['an empty path', { name: 'x', repository: 'a/b', path: './' }, '/path'],
  ['a folder for a path', { name: 'x', repository: 'a/b', path: 'prompts/' }, '/path'],
  ['a line break in a path', { name: 'x', repository: 'a/b', path: 'a\nb.md' }, '/path'],
  ['a number for a path', { name: 'x', repository: 'a/b', path: 7 }, '/path'],
])('a prompt with %s is rejected, naming the field', async (_, json, path) => {
  const { status, body } = await call('POST', '/prompts', json)
  expect({ status, path: body.error.details?.[0]?.path }).toEqual({ status: 422, path })
})

test('lists go by cursor, newest first, to the end', async () => {
  const own = await service.createTenant()
  const { key } = await makeAdmin(own)
  for (let index = 0; index < 4; index += 1) await call('POST', '/prompts', { name: `prompt ${index}` }, key)
  const names: string[] = []
  let path: string | undefined = '/prompts?limit=2'
  while (path) {
    const { body, headers } = await call('GET', path, undefined, key)
    names.push(...body.data.map(({ name }: { name: string }) => name))
    const next = /^<\/api\/v1(.*)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1]
    expect(next === undefined).toBe(body.pagination.next_cursor === null)
    path = next
  }
  expect(names).toEqual(['prompt 3', 'prompt 2', 'prompt 1', 'prompt 0', 'test'])
})
