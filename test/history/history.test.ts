import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createApp } from '../../src/app.ts'
import { createServices } from '../../src/deps.ts'
import { entry, startService, type Tenant, type TestService } from '../service.ts'

let service: TestService
let tenant: Tenant

const hour = (number: number) => new Date(Date.UTC(2026, 0, 1, number)).toISOString()

beforeAll(async () => {
  service = await startService()
  tenant = await service.createTenant()
  await service.addHistory(
    tenant.prompt,
    Array.from({ length: 130 }, (_, index) => entry({ created_at: hour(index), commit_sha: `sha${index}` })),
  )
})

afterAll(() => service.close())

const page = (query: string) => service.getHistory(tenant.prompt, tenant.key, query)

test('shows an entry with every field of the interface and nothing else', async () => {
  const { prompt, key } = await service.createTenant()
  const user = { name: 'Ada Löwe', email: 'ada@example.com' }
  const pr = { pr_number: 12, pr_url: 'https://example.com/pull/12' }
  await service.addHistory(prompt, [
    entry({ user, created_at: '2026-01-01T00:00:00Z' }),
    entry({ user, action: 'pr_opened', branch_name: 'fix', created_at: '2026-01-02T02:00:00.5+02:00', ...pr }),
  ])
  const answer = await service.getHistory(prompt, key)
  const shown = { id: expect.any(Number), user, commit_sha: expect.stringMatching(/^c0ffee/) }
  expect(answer.body).toEqual({
    data: [
      { ...shown, action: 'pr_opened', ...pr, branch_name: 'fix', created_at: '2026-01-02T00:00:00.500Z' },
      {
        ...shown,
        action: 'deployed',
        pr_number: null,
        pr_url: null,
        branch_name: 'main',
        created_at: '2026-01-01T00:00:00.000Z',
      },
    ],
    pagination: { current_page: 1, total_pages: 1, total_count: 2, per_page: 25 },
  })
  expect(answer.headers.get('content-type')).toStartWith('application/json')
})

test('a prompt without history has no pages', async () => {
  const { prompt, key } = await service.createTenant()
  const { status, body } = await service.getHistory(prompt, key)
  expect({ status, body }).toEqual({
    status: 200,
    body: { data: [], pagination: { current_page: 1, total_pages: 0, total_count: 0, per_page: 25 } },
  })
})

test('walks all entries once, newest first, whatever the page size', async () => {
  for (const limit of [1, 7, 25, 99, 100]) {
    const seen: string[] = []
    const pages = Math.ceil(130 / limit)
    for (let number = 1; number <= pages; number += 1) {
      const { body } = await page(`?page=${number}&limit=${limit}`)
      expect(body.pagination).toEqual({ current_page: number, total_pages: pages, total_count: 130, per_page: limit })
      seen.push(...body.data.map((shown: { created_at: string }) => shown.created_at))
    }
    expect(seen).toEqual(Array.from({ length: 130 }, (_, index) => hour(129 - index)))
  }
})

test.each([
  ['', 1, 25],
  ['?page=2', 2, 25],
  ['?limit=100', 1, 100],
  ['?limit=101', 1, 100],
  [`?limit=${'9'.repeat(40)}`, 1, 100],
  ['?limit=0&page=0', 1, 25],
  ['?limit=-1&page=-1', 1, 25],
  ['?limit=abc&page=abc', 1, 25],
  ['?limit=1.5&page=1.5', 1, 25],
  ['?limit=1e1&page=1e1', 1, 25],
  ['?limit=0x10&page=0x10', 1, 25],
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
  expect(body.pagination).toEqual({
    current_page: current,
    total_pages: Math.ceil(130 / size),
    total_count: 130,
    per_page: size,
  })
})

test.each(['7', '9007199254740993', '9223372036854775808', `1${'0'.repeat(30)}`, '9'.repeat(5000)])(
  'page %p is past the end: empty, with the true totals and the requested page number',
  async (number) => {
    const { status, body } = await page(`?page=${number}`)
    expect(status).toBe(200)
    expect(body).toEqual({
      data: [],
      pagination: {
        current_page: Math.min(Number(number), Number.MAX_VALUE),
        total_pages: 6,
        total_count: 130,
        per_page: 25,
      },
    })
  },
)

test.each([
  ['?limit=50', { first: 1, next: 2, last: 3 }],
  ['?limit=50&page=2', { first: 1, prev: 1, next: 3, last: 3 }],
  ['?limit=50&page=3', { first: 1, prev: 2, last: 3 }],
  ['?limit=50&page=900', { first: 1, prev: 3, last: 3 }],
])('links the pages around %p', async (query, pages) => {
  const { headers } = await page(query)
  const path = `/api/v1/prompts/${tenant.prompt}/history`
  const links = Object.entries(pages).map(([rel, number]) => `<${path}?page=${number}&limit=50>; rel="${rel}"`)
  expect(headers.get('link')).toBe(links.join(', '))
})

test('may be cached by the caller alone, who revalidates it each time', async () => {
  const path = `/api/v1/prompts/${tenant.prompt}/history`
  const cachingOf = ({ headers }: { headers: Headers }) => [headers.get('cache-control'), headers.get('vary')]
  const fresh = await page('')
  expect([fresh.status, ...cachingOf(fresh)]).toEqual([200, 'private, no-cache', 'Authorization'])
  const headers = { 'if-none-match': fresh.headers.get('etag') as string }
  const unchanged = await service.call('GET', path, { key: tenant.key, headers })
  expect([unchanged.status, ...cachingOf(unchanged)]).toEqual([304, 'private, no-cache', 'Authorization'])
})

test.each(['https://api.example.com', 'https://example.com/prompts/v2'])(
  'links begin with %s when callers reach it there',
  async (baseUrl) => {
    const { db, clock, log } = service.services
    const services = createServices({ db, clock, log }, { PUBLIC_URL: baseUrl })
    const url = `http://localhost/api/v1/prompts/${tenant.prompt}/history?limit=100`
    const { headers } = await createApp(services).fetch(
      new Request(url, { headers: { authorization: `Bearer ${tenant.key}` } }),
    )
    const target = `${baseUrl}/api/v1/prompts/${tenant.prompt}/history`
    expect(headers.get('link')).toBe(
      [1, 2, 2]
        .map((number, index) => `<${target}?page=${number}&limit=100>; rel="${['first', 'next', 'last'][index]}"`)
        .join(', '),
    )
  },
)

test('places late arrivals by time, and ties by the order of arrival', async () => {
  const { prompt, key } = await service.createTenant()
  const order = [5, 1, 3, 5, 2, 4, 1, 9, 3]
  await service.addHistory(
    prompt,
    order.map((number, index) => entry({ created_at: hour(number), commit_sha: `arrived-${index}` })),
  )
  const { body } = await service.getHistory(prompt, key)
  const expected = order
    .map((number, index) => ({ number, index }))
    .sort((a, b) => b.number - a.number || b.index - a.index)
    .map(({ index }) => `arrived-${index}`)
  expect(body.data.map((shown: { commit_sha: string }) => shown.commit_sha)).toEqual(expected)
})

test('concurrent writers to one prompt lose no entry and keep the order of time', async () => {
  const { prompt, key } = await service.createTenant()
  const times = Array.from({ length: 40 }, (_, index) => hour((index * 17) % 40))
  await Promise.all(times.map((created_at) => service.addHistory(prompt, [entry({ created_at })])))
  const { body } = await service.getHistory(prompt, key, '?limit=100')
  expect(body.pagination.total_count).toBe(40)
  expect(body.data.map((shown: { created_at: string }) => shown.created_at)).toEqual([...times].sort().reverse())
})
