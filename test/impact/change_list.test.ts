// The changes of all prompts with their verdicts, as the console, agents and the report get them.
import { beforeAll, expect, test } from 'bun:test'
import { maxListedChanges } from '../../src/impact/schema_changes.ts'
import { requirePrompt } from '../../src/prompts/find.ts'
import { changePrompt } from '../../src/prompts/manage.ts'
import { invalid } from '../client.ts'
import { entry } from '../service.ts'
import { useService, useTenant } from '../use.ts'
import { addSignals, deployed, merged, onDays, rollUp, signals } from './history.ts'

const service = useService()
const tenant = useTenant(service)
const commits = { good: 'a'.repeat(40), bad: `abc1234${'b'.repeat(33)}`, none: `abc1234${'c'.repeat(33)}` }
const ids: Record<string, string> = {}

beforeAll(async () => {
  service.clock.set('2026-11-15T12:00:00.000Z')
  const at = { base: '2026-10-01T00:00:00.000Z', head: '2026-11-01T00:00:00.000Z' }
  for (const [name, commit, [before, after]] of [
    ['greeting', commits.good, [60, 180]],
    ['farewell', commits.bad, [180, 60]],
  ] as const) {
    const id = await service.createPrompt(tenant, name)
    ids[name] = id
    await service.addHistory(id, [
      deployed('1111111', at.base),
      { ...merged(commit, at.head, 7), user: { name: name === 'greeting' ? 'Ada' : 'Bob', email: 'a@example.com' } },
    ])
    await addSignals(service, id, [
      ...onDays(20, signals(before, 240 - before, { at: '2026-10-01T12:00:00.000Z' })),
      ...onDays(10, signals(after, 240 - after, { at: '2026-11-01T12:00:00.000Z' })),
    ])
    await rollUp(service, id)
  }
  const silent = await service.createPrompt(tenant, 'silent')
  await service.addHistory(silent, [deployed(commits.none, '2026-11-10T00:00:00.000Z')])
  ids.archived = await service.createPrompt(tenant, 'archived')
  await service.addHistory(ids.archived, [deployed('4444444', '2026-11-12T00:00:00.000Z')])
  const { db, clock } = service.services
  await changePrompt(db, clock, await requirePrompt(db.sql, ids.archived), { archived: true })
})

const ask = (query: string, key = tenant.key) => service.get(`/changes?${query}`, key)
const none = { better: 0, worse: 0, same: 0, undecided: 0, not_compared: 0, without_signals: 0 }

test('changes are listed worse first and without signals last, each as the impact of its prompt has it', async () => {
  const { body } = await ask('')
  const rows = body.data.map(({ prompt, verdict, sentence, signals }: (typeof body.data)[0]) => {
    return [prompt.name, verdict, signals.total, sentence.split(':')[0]]
  })
  expect(rows).toEqual([
    ['farewell', 'worse', 240, 'Worse since PR #7'],
    ['greeting', 'better', 240, 'Better since PR #7'],
    ['farewell', null, 240, 'While 1111111 was live'],
    ['greeting', null, 240, 'While 1111111 was live'],
    ['silent', null, 0, 'No signals since abc1234.'],
  ])
  expect(body).toMatchObject({
    counts: { ...none, worse: 1, better: 1, not_compared: 2, without_signals: 1 },
    complete: true,
    pagination: { total_count: 5 },
  })
  const { prompt, sentence: _, ...impact } = body.data[0]
  expect(prompt).toEqual({ id: ids.farewell, name: 'farewell', repository: null, path: null })
  expect(impact).toEqual((await service.get(`/prompts/${ids.farewell}/impact?limit=1`, tenant.key)).body.data[0])
})

test.each([
  ['verdict=better', ['greeting']],
  ['verdict=undecided', []],
  ['since=2026-11-01', ['farewell', 'greeting', 'silent']],
  ['until=2026-10-31', ['farewell', 'greeting']],
  ['since=2026-11-01&search=GREET', ['greeting']],
  ['author=ob', ['farewell']],
  ['pr=7', ['farewell', 'greeting']],
  ['pr=https://example.com/7', ['farewell', 'greeting']],
  ['pr=8', []],
  ['commit=ABC1234', ['farewell', 'silent']],
  [`commit=${commits.bad}`, ['farewell']],
])('only changes that match %s are listed', async (query, names) => {
  const { body } = await ask(query)
  expect(body.data.map(({ prompt }: { prompt: { name: string } }) => prompt.name)).toEqual(names)
})

test('a prompt is named by its id, also an archived one, and never that of another organisation', async () => {
  const namesOf = async (prompt: string) =>
    (await ask(`prompt=${prompt}`)).body.data.map(({ prompt }: { prompt: { name: string } }) => prompt.name)
  expect(await namesOf(ids.archived as string)).toEqual(['archived'])
  const stranger = await service.createTenant()
  expect((await ask('', stranger.key)).body.data).toEqual([])
  for (const prompt of [stranger.prompt, 'pmt_none', 'greeting']) {
    expect(await ask(`prompt=${prompt}`)).toMatchObject(invalid('prompt'))
  }
})

test.each([
  ['verdict=good', 'verdict'],
  ['author=', 'author'],
  ['pr=0', 'pr'],
  ['commit=abc123', 'commit'],
  ['since=yesterday', 'since'],
])('%s is rejected by its name', async (query, name) => {
  expect(await ask(query)).toMatchObject(invalid(name))
})

test('pages have links with the same filters, and more changes than are compared are said to be left out', async () => {
  const { headers } = await ask('limit=1&search=e&verdict=worse&page=2')
  expect(headers.get('link')).toContain(
    '/api/v1/changes?page=1&limit=1&verdict=worse&search=e&margin=0.05>; rel="prev"',
  )
  const many = await service.createTenant()
  const entries = Array.from({ length: maxListedChanges + 1 }, (_, index) =>
    entry({ commit_sha: `${1_000_000 + index}`, created_at: new Date(Date.UTC(2026, 9, 1, 0, index)).toISOString() }),
  )
  for (let start = 0; start < entries.length; start += 100) {
    await service.addHistory(many.prompt, entries.slice(start, start + 100))
  }
  const { body } = await ask('limit=1', many.key)
  expect(body).toMatchObject({
    counts: { ...none, without_signals: maxListedChanges },
    complete: false,
    data: [{ change: { commit_sha: String(1_000_000 + maxListedChanges) } }],
  })
})
