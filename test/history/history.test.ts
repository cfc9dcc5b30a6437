import { beforeAll, expect, test } from 'bun:test'
import { createApp } from '../../src/app.ts'
import { createServices } from '../../src/deps.ts'
import { invalid } from '../client.ts'
import { entry } from '../service.ts'
import { useNewTenant, useService, useTenant } from '../use.ts'

type Shown = { action: string; branch_name: string; created_at: string }

const service = useService()
const tenant = useTenant(service)
/** Without entries. */
const own = useNewTenant(service)

const at = (hour: number) => new Date(Date.UTC(2026, 0, 1, hour)).toISOString()
const actions = ['deployed', 'pr_opened', 'pr_merged', 'pr_closed']
const pr = { pr_number: 12, pr_url: 'https://example.com/pull/12' }
const branch = encodeURIComponent('feature/ä b&c')

/** An entry an hour, through the actions and two branches. */
const entries = Array.from({ length: 130 }, (_, index) => ({
  action: actions[index % 4] as string,
  branch_name: index % 3 === 0 ? 'feature/ä b&c' : 'main',
  created_at: at(index),
}))

beforeAll(() =>
  service.addHistory(
    tenant.prompt,
    entries.map((one) => entry({ ...one, ...(one.action === 'deployed' ? {} : pr) })),
  ),
)

const page = (query: string) => service.getHistory(tenant.prompt, tenant.key, query)
const paging = (current_page: number, total_count: number, per_page = 25) => ({
  current_page,
  total_pages: Math.ceil(total_count / per_page),
  total_count,
  per_page,
})

test('shows no pages without history, and an entry with every field of the interface and nothing else', async () => {
  const { status, body: empty } = await service.getHistory(own.prompt, own.key)
  expect({ status, empty }).toEqual({ status: 200, empty: { data: [], pagination: paging(1, 0) } })
  const user = { name: 'Ada Löwe', email: 'ada@example.com' }
  await service.addHistory(own.prompt, [
    entry({ user, created_at: '2026-01-01T00:00:00Z' }),
    entry({ user, action: 'pr_opened', branch_name: 'fix', created_at: '2026-01-02T02:00:00.5+02:00', ...pr }),
  ])
  const { body, headers } = await service.getHistory(own.prompt, own.key)
  const shown = { id: expect.any(Number), user, commit_sha: expect.stringMatching(/^c0ffee/) }
  const noPr = { pr_number: null, pr_url: null }
  expect(body).toEqual({
    data: [
      { ...shown, action: 'pr_opened', ...pr, branch_name: 'fix', created_at: '2026-01-02T00:00:00.500Z' },
      { ...shown, action: 'deployed', ...noPr, branch_name: 'main', created_at: '2026-01-01T00:00:00.000Z' },
    ],
    pagination: paging(1, 2),
  })
  expect(headers.get('content-type')).toStartWith('application/json')
})

test.each<[string, (shown: Shown) => boolean, number]>([
  ['', () => true, 1],
  ['', () => true, 99],
  ['', () => true, 100],
  ['action=deployed', ({ action }) => action === 'deployed', 25],
  ['action=pr_opened,pr_closed', ({ action }) => action === 'pr_opened' || action === 'pr_closed', 25],
  ['action=pr_opened&action=pr_closed', ({ action }) => action === 'pr_opened' || action === 'pr_closed', 25],
  ['action=pr_closed,deployed,pr_opened,pr_merged,deployed', () => true, 25],
  ['branch=main', ({ branch_name }) => branch_name === 'main', 7],
  [`branch=${branch}`, ({ branch_name }) => branch_name !== 'main', 25],
  // No text can name this branch.
  ['branch=%ff', () => false, 25],
  [`since=${at(40)}`, ({ created_at }) => created_at >= at(40), 25],
  [`until=${at(10)}`, ({ created_at }) => created_at <= at(10), 25],
  [`since=${at(10)}&until=${at(20)}`, ({ created_at }) => created_at >= at(10) && created_at <= at(20), 7],
  [`since=${at(20)}&until=${at(10)}`, () => false, 25],
  ['since=2026-01-02', ({ created_at }) => created_at >= at(24), 25],
  ['since=2026-01-02T02:00:00+02:00', ({ created_at }) => created_at >= at(24), 25],
  [
    `action=deployed,pr_merged&branch=main&since=${at(5)}&until=${at(50)}`,
    ({ action, branch_name, created_at }) =>
      (action === 'deployed' || action === 'pr_merged') &&
      branch_name === 'main' &&
      created_at >= at(5) &&
      created_at <= at(50),
    7,
  ],
])('"%s" lists what matches, newest first, with its own totals', async (query, matches, limit) => {
  const expected = entries.filter(matches).reverse()
  const seen: Shown[] = []
  for (let number = 1; number === 1 || number <= Math.ceil(expected.length / limit); number += 1) {
    const { body } = await page(`?${query}&limit=${limit}&page=${number}`)
    expect(body.pagination).toEqual(paging(number, expected.length, limit))
    seen.push(...body.data)
  }
  expect(seen.map(({ action, branch_name, created_at }) => ({ action, branch_name, created_at }))).toEqual(expected)
})

test.each([
  ['', 1, 25],
  ['?page=2', 2, 25],
  ['?limit=101', 1, 100],
  [`?limit=${'9'.repeat(40)}`, 1, 100],
  ['?page=1limit=5', 1, 25],
  ['?page=2limit=1', 1, 25],
  ['?limit=0&page=0', 1, 25],
  ['?limit=-1&page=-1', 1, 25],
  ['?limit=abc&page=abc', 1, 25],
  ['?limit=1.5&page=1.5', 1, 25],
  ['?limit=1e1&page=1e1', 1, 25],
  ['?limit=&page=', 1, 25],
  ['?limit&page', 1, 25],
  ['?limit=5&limit=6&page=2&page=2', 1, 25],
  ['?limit=%2B5&page=+2', 1, 25],
  ['?limit=%ff&page=%E0%A4%A', 1, 25],
  ['?limit=%00&page=%F0%9F%98%80', 1, 25],
  ['?limit=٣&page=٣', 1, 25],
  ['?LIMIT=5&Page=2&limit[]=5', 1, 25],
  ['?limit=007&page=002', 2, 7],
  ['?page=3&unknown=1', 3, 25],
])('the query %p is served as page %p of %p', async (query, current, size) => {
  const { status, body } = await page(query)
  expect(status).toBe(200)
  expect(body.pagination).toEqual(paging(current, 130, size))
})

test.each(['7', '9007199254740993', '9223372036854775808', `1${'0'.repeat(30)}`, '9'.repeat(5000)])(
  'page %p is past the end: empty, with the true totals and the requested page number',
  async (number) => {
    const { status, body } = await page(`?page=${number}`)
    expect(status).toBe(200)
    expect(body).toEqual({ data: [], pagination: paging(Math.min(Number(number), Number.MAX_VALUE), 130) })
  },
)

test.each<[string, ...string[]]>([
  ['action=', 'action'],
  ['action=merged', 'action'],
  ['action=DEPLOYED', 'action'],
  ['action=pr_merged,nonsense', 'action'],
  ['action=deployed&action=', 'action'],
  ['since', 'since'],
  ['since=yesterday', 'since'],
  ['since=2026-02-30', 'since'],
  ['since=2026-01-01T00:00:00', 'since'],
  [`since=${at(40)}&since=${at(40)}`, 'since'],
  ['until=%00', 'until'],
  ['until=99999-01-01T00:00:00Z', 'until'],
  ['branch=', 'branch'],
  ['branch=main&branch=main', 'branch'],
  ['branch=%00', 'branch'],
  [`branch=${'b'.repeat(256)}`, 'branch'],
  ['page=x&limit=y&since=z', 'since'],
  ['action=a&branch=&since=b&until=c', 'action', 'since', 'until', 'branch'],
])('%p is rejected, naming what is wrong', async (query, ...parameters) => {
  const message = expect.stringMatching(/^must be /)
  expect(await page(`?${query}`)).toMatchObject(
    invalid(...parameters.map((path): [string, unknown] => [path, message])),
  )
})

test('no Link header has more than 4 KiB, and the next page is always in it', async () => {
  const branch_name = '\u3042'.repeat(255)
  const user = { name: 'Ada', email: 'ada@example.com' }
  await service.addHistory(
    own.prompt,
    [1, 2, 3].map((hour) => entry({ user, branch_name, created_at: at(hour) })),
  )
  for (const path of ['history', 'impact']) {
    const { headers } = await service.get(
      `/prompts/${own.prompt}/${path}?limit=1&page=2&branch=${branch_name}`,
      own.key,
    )
    const link = headers.get('link') ?? ''
    expect(link.length).toBeLessThanOrEqual(4_096)
    expect(link).toMatch(/^<[^>]+page=3[^>]*>; rel="next"$/)
  }
  await Promise.all([1, 2].map(() => service.postSignal(own.prompt, own.key)))
  const long = await service.get(`/prompts/${own.prompt}/signals?limit=1&unknown=${'x'.repeat(5_000)}`, own.key)
  expect([long.status, long.headers.get('link')]).toEqual([200, null])
  expect(long.body.pagination.next_cursor).not.toBeNull()
})

test('the key is checked first, then the prompt, then the filters, then what the client has', async () => {
  const wrong = '?action=merged'
  expect((await service.getHistory(tenant.prompt, 'psk_wrong', wrong)).status).toBe(401)
  expect((await service.getHistory(own.prompt, tenant.key, wrong)).status).toBe(404)
  const path = `/prompts/${tenant.prompt}/history${wrong}`
  expect((await service.get(path, tenant.key, { 'if-none-match': '*' })).status).toBe(422)
})

test.each([
  ['limit=50', { first: 1, next: 2, last: 3 }],
  ['limit=50&page=2', { first: 1, prev: 1, next: 3, last: 3 }],
  ['limit=50&page=3', { first: 1, prev: 2, last: 3 }],
  ['limit=50&page=900', { first: 1, prev: 3, last: 3 }],
])('links the pages around %p', async (query, pages) => {
  const path = `/api/v1/prompts/${tenant.prompt}/history`
  const links = Object.entries(pages).map(([rel, number]) => `<${path}?page=${number}&limit=50>; rel="${rel}"`)
  expect((await page(`?${query}`)).headers.get('link')).toBe(links.join(', '))
})

test('links keep the filters, and begin with the public address of the service', async () => {
  const { db, clock, log } = service.services
  const app = createApp(createServices({ db, clock, log }, { PUBLIC_URL: 'https://example.com/prompts/v2' }))
  const linksOf = async (path: string) => {
    const headers = { authorization: `Bearer ${tenant.key}` }
    return (await app.fetch(new Request(`http://localhost${path}`, { headers }))).headers.get('link')
  }
  const query = `limit=2&action=deployed&branch=${branch.replace('%20', '+')}`
  const path = `/api/v1/prompts/${tenant.prompt}`
  const address = `https://example.com/prompts/v2${path}`
  expect(await linksOf(`${path}/history?${query}`)).toStartWith(`<${address}/history?page=1&${query}>; rel="first"`)
  for (const _ of [1, 2]) await service.postSignal(tenant.prompt, tenant.key)
  expect(await linksOf(`${path}/signals?limit=1`)).toStartWith(`<${address}/signals?limit=1&cursor=`)
})

test('places late arrivals by time, and ties by the order of arrival', async () => {
  const order = [5, 1, 3, 5, 2, 4, 1, 9, 3]
  await service.addHistory(
    own.prompt,
    order.map((number, index) => entry({ created_at: at(number), commit_sha: `arrived-${index}` })),
  )
  const { body } = await service.getHistory(own.prompt, own.key)
  const expected = order
    .map((number, index) => ({ number, index }))
    .sort((a, b) => b.number - a.number || b.index - a.index)
    .map(({ index }) => `arrived-${index}`)
  expect(body.data.map((shown: { commit_sha: string }) => shown.commit_sha)).toEqual(expected)
})
