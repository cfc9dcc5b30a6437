import { expect, test } from 'bun:test'
import type { Db } from '../../src/db/client.ts'
import { scopes } from '../../src/lib/scopes.ts'
import { createPromptFinder, requirePrompt } from '../../src/prompts/find.ts'
import { changePrompt } from '../../src/prompts/manage.ts'
import { type Answer, invalid } from '../client.ts'
import { rejectionOf } from '../program.ts'
import { useAdmin, useService, useTenant } from '../use.ts'

const service = useService()
const tenant = useTenant(service)
const admin = useAdmin(service, tenant)

const create = (json: object) => service.post('/prompts', admin.key, json)
const change = (id: string, json: object) => service.patch(`/prompts/${id}`, admin.key, json)
const show = (id: string) => service.get(`/prompts/${id}`, admin.key)

const auditOf = async (subject: string) => {
  const { body } = await service.get('/audit?limit=100', admin.key)
  return body.data
    .filter((entry: { subject: string }) => entry.subject === subject)
    .map(({ actor, action, details }: Record<string, unknown>) => ({ actor, action, details }))
}

const file = { repository: null, path: null, file_state: null, file_moved_to: null, live_branch: null }
const unlinked = { ...file, archived: false, last_entry_at: null }
const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

test('a prompt is made, used, shown, changed, linked and unlinked; the audit log has each change once', async () => {
  const made = await create({ name: ' Greeting ' })
  const { id } = made.body.data
  const id16 = expect.stringMatching(/^pmt_[0-9A-Za-z]{16}$/)
  const prompt = { id: id16, org: tenant.org, name: 'Greeting', created_at: time }
  expect([made.status, made.body]).toEqual([201, { data: { ...prompt, ...unlinked } }])
  expect((await service.postSignal(id, tenant.key)).status).toBe(201)
  expect((await show(id)).body).toEqual(made.body)

  const link = { repository: 'Acme/Prompts', path: './prompts/greeting.md' }
  const linked = { ...made.body.data, repository: 'acme/prompts', path: 'prompts/greeting.md' }
  expect((await change(id, link)).body).toEqual({ data: linked })
  const renamed = await change(id, { name: 'Warm greeting' })
  expect([renamed.status, renamed.body]).toEqual([200, { data: { ...linked, name: 'Warm greeting' } }])
  const without = await change(id, { repository: null, path: null })
  expect(without.body).toEqual({ data: { ...made.body.data, name: 'Warm greeting' } })
  const same = { name: 'Warm greeting', repository: null, path: null }
  expect((await change(id, same)).body).toEqual(without.body)
  expect((await show(id)).body).toEqual(without.body)
  const by = { actor: admin.id, action: 'prompt.updated' }
  expect(await auditOf(id)).toEqual([
    { ...by, details: { repository: null, path: null } },
    { ...by, details: { name: 'Warm greeting' } },
    { ...by, details: { repository: 'acme/prompts', path: 'prompts/greeting.md' } },
    { actor: admin.id, action: 'prompt.created', details: { name: 'Greeting', repository: null, path: null } },
  ])
})

test('an archived prompt is left out of lists unless asked for, records all the same, and can be brought back', async () => {
  const own = await service.createTenant()
  const { key } = await service.createKey(own, [...scopes])
  const { id } = (await service.post('/prompts', key, { name: 'Old' })).body.data
  const archived = await service.patch(`/prompts/${id}`, key, { archived: true })
  expect([archived.status, archived.body.data.archived]).toEqual([200, true])
  const idsOf = async (query: string) =>
    (await service.get(query, key)).body.data.map(
      (row: { id?: string; prompt?: { id: string } }) => row.id ?? row.prompt?.id,
    )
  for (const list of ['/prompts?', '/impact?', '/impact?sort=name&', '/prompts?search=pmt&']) {
    expect(await idsOf(list)).toEqual([own.prompt])
    expect(await idsOf(`${list}archived=true`)).toEqual([id])
    expect((await idsOf(`${list}archived=all`)).toSorted()).toEqual([id, own.prompt].toSorted())
    expect(await service.get(`${list}archived=yes`, key)).toMatchObject(invalid('archived'))
  }
  expect((await service.postSignal(id, own.key)).status).toBe(201)
  await service.patch(`/prompts/${id}`, key, { archived: false })
  expect(await idsOf('/prompts')).toContain(id)
  const { body } = await service.get('/audit', key)
  expect(body.data.slice(0, 2).map(({ details }: { details: object }) => details)).toEqual([
    { archived: false },
    { archived: true },
  ])
})

test('a prompt may bring its own id and link; neither can be taken twice, also by a change', async () => {
  const given = { id: 'pmt_own-1', name: 'Own', repository: 'acme/own', path: 'own.md' }
  expect((await create(given)).body).toEqual({ data: { ...unlinked, ...given, org: tenant.org, created_at: time } })
  const taken = (answer: Answer) => [answer.status, answer.body.error.details[0].path, answer.body.error.message]
  const other = { name: 'Other', repository: 'ACME/own', path: 'own.md' }
  const isTaken = [422, '/id', 'The id pmt_own-1 is taken.']
  expect(taken(await create({ ...other, path: 'b.md', id: 'pmt_own-1' }))).toEqual(isTaken)
  const isLinked = [422, '/path', 'own.md in acme/own is already linked to pmt_own-1.']
  expect(taken(await create(other))).toEqual(isLinked)
  expect(taken(await change(tenant.prompt, { repository: 'acme/own', path: 'own.md' }))).toEqual(isLinked)
  expect(await auditOf(tenant.prompt)).toMatchObject([{ actor: 'cli', action: 'prompt.created' }])
})

test('of ten that link different prompts to one file at once, one does', async () => {
  const made = await Promise.all(Array.from({ length: 10 }, (_, index) => create({ name: `racing ${index}` })))
  const link = { repository: 'acme/race', path: 'race.md' }
  const answers = await Promise.all(made.map(({ body }) => change(body.data.id, link)))
  expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(9).fill(422)])
})

test('a link to a file that another prompt leaves meanwhile says that the file was taken', async () => {
  const { db, clock } = service.services
  const link = { repository: 'acme/left', path: 'left.md' }
  const { id } = (await create({ name: 'leaves', ...link })).body.data
  const prompt = await requirePrompt(db.sql, tenant.prompt)
  const transaction: Db['transaction'] = (...given) =>
    db.transaction(...given).finally(() => change(id, { repository: null, path: null }))
  const message = await rejectionOf(changePrompt({ ...db, transaction }, clock, prompt, link))
  expect(message).toBe('left.md in acme/left is already linked to another prompt.')
})

test('a path of as many bytes as an index can hold is linked, and one byte more is rejected', async () => {
  // Nothing in it comes again, so that Postgres cannot compress it.
  const letters = Array.from({ length: 333 }, (_, index) => String.fromCodePoint(0x4e00 + ((index * 7919) % 20_000)))
  const repository = Array.from({ length: 10 }, (_, index) => `${index}`.repeat(100)).join('/')
  const path = `${letters.join('')}x`
  const link = (given: string) => create({ name: 'long', repository, path: given })
  expect((await link(path)).body.data).toMatchObject({ repository, path })
  expect(await link(`${path}y`)).toMatchObject(invalid('/path'))
  expect((await link(letters.join('').repeat(3))).status).toBe(422)
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
  expect(await create(json)).toMatchObject(invalid(path))
})

/** The same database, with a count of the statements that are sent to it. */
function counting(db: Db) {
  let statements = 0
  const sql = new Proxy(db.sql, {
    apply(target, self, given) {
      statements += 1
      return Reflect.apply(target, self, given)
    },
  })
  return { db: { ...db, sql }, statements: () => statements }
}

test("another organisation's prompt costs as much as one that does not exist, also when it is cached", async () => {
  const [own, other] = [await service.createTenant(), await service.createTenant()]
  const { db } = service.services
  const [{ organisationId, id }, another] = [
    await requirePrompt(db.sql, own.prompt),
    await requirePrompt(db.sql, other.prompt),
  ]
  const { db: counted, statements } = counting(db)
  const { find } = createPromptFinder(counted)
  expect(another).toMatchObject(await find(another.organisationId, other.prompt))

  async function costOf(prompt: string, isFound: boolean): Promise<number> {
    const before = statements()
    const found = await Promise.resolve(find(organisationId, prompt)).catch(() => null)
    expect(found !== null).toBe(isFound)
    return statements() - before
  }
  for (let round = 0; round < 3; round += 1) {
    expect([await costOf(other.prompt, false), await costOf('pmt_unknown', false)]).toEqual([1, 1])
  }
  expect([await costOf(own.prompt, true), await costOf(own.prompt, true)]).toEqual([1, 0])
  expect(await find(organisationId, own.prompt)).toEqual({ organisationId, id, publicId: own.prompt })
})
