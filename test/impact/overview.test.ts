import { beforeAll, expect, mock, test } from 'bun:test'
import { createOverview } from '../../src/impact/overview.ts'
import { maxSortedPrompts, overviewParams } from '../../src/impact/schema.ts'
import { requirePrompt } from '../../src/prompts/find.ts'
import { changePrompt } from '../../src/prompts/manage.ts'
import { invalid } from '../client.ts'
import { inFullRun } from '../full.ts'
import { rejectionOf } from '../program.ts'
import { useService, useTenant } from '../use.ts'
import { addSignals, deployed, merged, onDays, signals } from './history.ts'

const service = useService()
const tenant = useTenant(service)

/** Oldest first; the tenant's own prompt, which is called test, is older than all of them. */
const prompts = [
  { name: 'step 10', changedAt: '2026-11-10', positive: 3, negative: 1 },
  { name: 'Step 9', changedAt: '2026-11-14', positive: 1, negative: 3 },
  { name: 'élan', changedAt: null, positive: 0, negative: 0 },
  { name: 'zebra 100%', changedAt: '2026-10-01', positive: 3, negative: 1 },
  { name: 'east', changedAt: '2026-11-12', positive: 9, negative: 0 },
  { name: 'farewell', changedAt: null, positive: 0, negative: 1 },
]
const ids: Record<string, string> = {}

beforeAll(async () => {
  service.clock.set('2026-11-15T12:00:00.000Z')
  for (const { name, changedAt, positive, negative } of prompts) {
    const file = name === 'élan' ? { repository: 'acme/prompts', path: 'Prompts/Deep_Ends.md' } : {}
    const id = await service.createPrompt(tenant, name, file)
    ids[name] = id
    if (changedAt) {
      await service.addHistory(id, [
        deployed('1111111aaaa', '2026-09-01T00:00:00.000Z'),
        merged('2222222bbbb', `${changedAt}T00:00:00.000Z`, 1),
        // What has not gone live is no change of the prompt.
        { ...merged('3333333cccc', '2026-11-14T23:00:00.000Z', 2), action: 'pr_opened' },
      ])
    }
    await addSignals(service, id, signals(positive, negative, { at: '2026-11-01T12:00:00.000Z' }))
    // Too old to count.
    await addSignals(service, id, [{ value: 'negative', at: '2026-10-01T12:00:00.000Z' }])
  }
})
const ask = (query: string, { key } = tenant) => service.get(`/impact${query}`, key)
type Page = { data: { prompt: { name: string } }[]; pagination: { next_cursor: string | null } }
const namesOf = ({ data }: Page) => data.map(({ prompt }) => prompt.name)

/** The names of all pages, each of two; between two of them something may happen. */
async function walk(query: string, between: () => Promise<unknown> = async () => {}): Promise<string[]> {
  const names: string[] = []
  for (let path = `?limit=2&${query}`; path; ) {
    const { status, body, headers } = await ask(path)
    expect(status).toBe(200)
    names.push(...namesOf(body))
    path = /<[^>]+(\?[^>]+)>/.exec(headers.get('link') ?? '')?.[1] ?? ''
    if (path) await between()
  }
  return names
}

test.each([
  ['margin=0.1', ['farewell', 'east', 'zebra 100%', 'élan', 'Step 9', 'step 10', 'test']],
  ['sort=name', ['east', 'élan', 'farewell', 'Step 9', 'step 10', 'test', 'zebra 100%']],
  ['sort=last_change', ['Step 9', 'east', 'step 10', 'zebra 100%', 'farewell', 'élan', 'test']],
  ['sort=rate', ['farewell', 'Step 9', 'zebra 100%', 'step 10', 'east', 'élan', 'test']],
  ['sort=signals', ['east', 'zebra 100%', 'Step 9', 'step 10', 'farewell', 'élan', 'test']],
  // Of those with signals. Only the live change of zebra has some.
  ['sort=effect', ['zebra 100%', 'east', 'Step 9', 'step 10', 'farewell']],
  ['show=signals', ['Step 9', 'east', 'step 10', 'zebra 100%', 'farewell']],
  ['show=signals&sort=name', ['east', 'farewell', 'Step 9', 'step 10', 'zebra 100%']],
])('all prompts are in the order of "%s", over all pages', async (query, names) => {
  expect(await walk(query)).toEqual(names)
  expect((await ask(`?limit=2&${query}`)).headers.get('link')).toContain(query)
})

test('only prompts with a worse live change are shown, and by their effect these are first', async () => {
  const own = await service.createTenant()
  for (const [name, before, after] of [
    ['better', 60, 180],
    ['worse', 180, 60],
  ] as const) {
    const id = await service.createPrompt(own, name)
    await service.addHistory(id, [
      deployed('1111111aaaa', '2026-10-01T00:00:00.000Z'),
      deployed('2222222bbbb', '2026-11-01T00:00:00.000Z'),
    ])
    await addSignals(service, id, [
      ...onDays(20, signals(before, 240 - before, { at: '2026-10-01T12:00:00.000Z' })),
      ...onDays(10, signals(after, 240 - after, { at: '2026-11-01T12:00:00.000Z' })),
    ])
  }
  const shown = async (query: string) => namesOf((await ask(`?${query}`, own)).body)
  expect(await shown('show=worse')).toEqual(['worse'])
  expect(await shown('show=better&sort=name')).toEqual(['better'])
  expect(await shown('sort=effect')).toEqual(['worse', 'better'])
  expect(await ask('?show=same', own)).toMatchObject(invalid('show'))
})

test('a sorted page shows of each prompt what an unsorted one does', async () => {
  const [plain, sorted] = [await ask(''), await ask('?sort=name')]
  const byName = (one: { prompt: { name: string } }) => one.prompt.name
  expect(Map.groupBy(sorted.body.data, byName)).toEqual(Map.groupBy(plain.body.data, byName))
})

test.each([
  ['STEP', ['Step 9', 'step 10']],
  ['100%', ['zebra 100%']],
  ['deep_ends.MD', ['élan']],
  ['%', ['zebra 100%']],
  ['_ends', ['élan']],
  [' east ', ['east']],
  ['none of them', []],
])('"%s" is found in names and paths, in any letter case, and by every order', async (text, names) => {
  const search = `search=${encodeURIComponent(text)}`
  for (const query of [search, `${search}&sort=name`, `${search}&sort=rate`]) {
    expect((await walk(query)).toSorted()).toEqual(names)
  }
  const { body } = await service.get(`/prompts?${search}`, tenant.key)
  expect(body.data.map(({ name }: { name: string }) => name).toSorted()).toEqual(names)
})

test('a prompt is found by its id, and by nobody else', async () => {
  const search = `search=${(ids.east as string).toUpperCase()}`
  expect(await walk(search)).toEqual(['east'])
  const stranger = await service.createTenant()
  expect((await ask(`?${search}`, stranger)).body.data).toEqual([])
  expect((await ask(`?${search}&sort=signals`, stranger)).body.data).toEqual([])
})

test('what changes between two pages moves no other prompt', async () => {
  const { db, clock } = service.services
  const rename = async (from: string, to: string) =>
    changePrompt(db, clock, await requirePrompt(db.sql, ids[from] as string), { name: to })
  let pages = 0
  // The page ends with élan, which then has the last name of all: it is seen twice, and nothing is left out.
  const names = await walk('sort=name', async () => {
    if (pages++ === 0) await rename('élan', 'zz')
  })
  await rename('élan', 'élan')
  expect(names).toEqual(['east', 'élan', 'farewell', 'Step 9', 'step 10', 'test', 'zebra 100%', 'zz'])
})

test('a cursor works only with its own search and order', async () => {
  const cursor = (await ask('?limit=1&sort=name')).body.pagination.next_cursor
  for (const query of ['', '&sort=rate', '&sort=name&search=e']) {
    expect(await ask(`?cursor=${cursor}${query}`)).toMatchObject(invalid('cursor'))
  }
})

test.each([
  ['name', '\0'],
  ['name', '\ud800'],
  ['rate', 'no number'],
])('a cursor of the order by %s with a made-up key is no error of the service', async (sort, key) => {
  const cursor = (await ask(`?limit=1&sort=${sort}`)).body.pagination.next_cursor
  const [list, ...place] = JSON.parse(Buffer.from(cursor, 'base64url').toString())
  const forged = Buffer.from(JSON.stringify([list, ...place.slice(0, 2), key])).toString('base64url')
  expect((await ask(`?sort=${sort}&cursor=${forged}`)).status).toBe(200)
})

test.each([
  ['sort=colour', 'sort'],
  ['sort=', 'sort'],
  ['sort=name&sort=name', 'sort'],
  ['search=', 'search'],
  ['search=%20', 'search'],
  ['search=a&search=a', 'search'],
  [`search=${'a'.repeat(201)}`, 'search'],
  ['search=a%00b', 'search'],
  ['search=a%0Ab', 'search'],
])('%s is rejected by its name', async (query, name) => {
  for (const path of name === 'search' ? ['/impact', '/prompts'] : ['/impact']) {
    expect(await service.get(`${path}?${query}`, tenant.key)).toMatchObject(invalid(name))
  }
})

test('more prompts than can be sorted are searched for fewer, which eight callers get at the same time', async () => {
  const large = await service.createTenant()
  for (let last = 0; last < maxSortedPrompts; last += 2_000) {
    await service.services.db.sql`
      insert into prompts (public_id, organisation_id, name, created_at)
      select 'pmt_many_' || n, o.id, 'many ' || n, now()
      from organisations o, generate_series(${last + 1}::integer, ${last + 2_000}::integer) n
      where o.public_id = ${large.org}`
  }
  const message = 'must be left out where more than 50000 prompts are found'
  expect(await ask('?sort=name', large)).toMatchObject(invalid(['sort', message]))
  expect((await ask('', large)).status).toBe(200)
  const newest = ['many 50000', 'many 49999']
  for (const [query, names] of [
    ...inFullRun([['sort=rate&search=many', newest]] as const, []),
    ['sort=rate&search=many+4', ['many 49999', 'many 49998']],
    ['sort=signals&search=many+4', ['many 49999', 'many 49998']],
    ['sort=last_change&search=0', newest.toSpliced(1, 1, 'many 49990')],
    ['sort=name&search=many+4', ['many 4', 'many 40']],
  ] as const) {
    const answers = await Promise.all(Array.from({ length: 8 }, () => ask(`?limit=2&${query}`, large)))
    for (const { status, body } of answers) expect([status, namesOf(body)]).toEqual([200, [...names]])
  }
})

test('callers of one page share a read, which begins after they asked and ends at its deadline', async () => {
  const { db, clock, rollup } = service.services
  const { prompt } = await service.createTenant()
  const { organisationId } = await requirePrompt(db.sql, prompt)
  const query = overviewParams.parse(new URLSearchParams('sort=rate'))
  const later: Promise<unknown>[] = []
  const transaction = mock<typeof db.transaction>(async (...given) => {
    const result = await db.transaction(...given)
    if (later.length === 0) {
      await addSignals(service, prompt, signals(1, 0, { at: '2026-11-01T12:00:00.000Z' }))
      for (let reader = 0; reader < 7; reader++) later.push(countSignals())
    }
    return result
  })
  const readOverview = createOverview({ db: { ...db, transaction } as typeof db, clock, rollup })
  const countSignals = async (deadline = Number.POSITIVE_INFINITY) =>
    (await readOverview(organisationId, query, deadline)).data[0]?.recent.total
  expect(await countSignals()).toBe(0)
  expect(await Promise.all(later)).toEqual(Array(7).fill(1))
  expect(transaction).toHaveBeenCalledTimes(2)
  expect(await rejectionOf(countSignals(performance.now()))).toContain('The service could not complete the request')
})
