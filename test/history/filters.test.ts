import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Db } from '../../src/db/client.ts'
import { parseHistoryQuery } from '../../src/history/query.ts'
import { createHistoryReader } from '../../src/history/read.ts'
import { entry, startService, type Tenant, type TestService } from '../service.ts'

type Shown = { action: string; branch_name: string; created_at: string }

let service: TestService
let tenant: Tenant

const at = (number: number) => new Date(Date.UTC(2026, 0, 1, number)).toISOString()
const actions = ['deployed', 'pr_opened', 'pr_merged', 'pr_closed']
const pr = { pr_number: 1, pr_url: 'https://example.com/1' }

/** An entry an hour, through the actions and two branches. */
const entries = Array.from({ length: 60 }, (_, index) => ({
  action: actions[index % 4] as string,
  branch_name: index % 3 === 0 ? 'feature/ä b&c' : 'main',
  created_at: at(index),
}))

beforeAll(async () => {
  service = await startService()
  tenant = await service.createTenant()
  await service.addHistory(
    tenant.prompt,
    entries.map((one) => entry({ ...one, ...(one.action === 'deployed' ? {} : pr) })),
  )
})

afterAll(() => service.close())

const branch = encodeURIComponent('feature/ä b&c')

test.each<[string, (shown: Shown) => boolean]>([
  ['action=deployed', ({ action }) => action === 'deployed'],
  ['action=pr_opened,pr_closed', ({ action }) => action === 'pr_opened' || action === 'pr_closed'],
  ['action=pr_opened&action=pr_closed', ({ action }) => action === 'pr_opened' || action === 'pr_closed'],
  ['action=pr_closed,deployed,pr_opened,pr_merged,deployed', () => true],
  ['branch=main', ({ branch_name }) => branch_name === 'main'],
  [`branch=${branch}`, ({ branch_name }) => branch_name !== 'main'],
  ['branch=none', () => false],
  [`since=${at(40)}`, ({ created_at }) => created_at >= at(40)],
  [`until=${at(10)}`, ({ created_at }) => created_at <= at(10)],
  [`since=${at(10)}&until=${at(20)}`, ({ created_at }) => created_at >= at(10) && created_at <= at(20)],
  [`since=${at(20)}&until=${at(10)}`, () => false],
  ['since=2026-01-02', ({ created_at }) => created_at >= at(24)],
  ['since=2026-01-02T02:00:00+02:00', ({ created_at }) => created_at >= at(24)],
  ['since=2050-01-01T00:00:00Z', () => false],
  [
    `action=deployed,pr_merged&branch=main&since=${at(5)}&until=${at(50)}`,
    ({ action, branch_name, created_at }) =>
      (action === 'deployed' || action === 'pr_merged') &&
      branch_name === 'main' &&
      created_at >= at(5) &&
      created_at <= at(50),
  ],
])('%s lists what matches, with its own totals', async (query, matches) => {
  const expected = entries.filter(matches).reverse()
  const seen: Shown[] = []
  const pages = Math.ceil(expected.length / 7)
  for (let page = 1; page <= Math.max(pages, 1); page += 1) {
    const { body } = await service.getHistory(tenant.prompt, tenant.key, `?${query}&limit=7&page=${page}`)
    expect(body.pagination).toEqual({
      current_page: page,
      total_pages: pages,
      total_count: expected.length,
      per_page: 7,
    })
    seen.push(...body.data)
  }
  expect(seen.map(({ action, branch_name, created_at }) => ({ action, branch_name, created_at }))).toEqual(expected)
})

test.each([
  ['action=', 'action'],
  ['action=merged', 'action'],
  ['action=DEPLOYED', 'action'],
  ['action=pr_merged,nonsense', 'action'],
  ['action=deployed,', 'action'],
  ['action=deployed&action=', 'action'],
  ['since=', 'since'],
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
  ['page=x&limit=y&since=z', 'since'],
])('%p is rejected, naming the parameter', async (query, parameter) => {
  const { status, body } = await service.getHistory(tenant.prompt, tenant.key, `?${query}`)
  expect([status, body.error.code]).toEqual([422, 'validation_error'])
  expect(body.error.details).toEqual([{ path: parameter, message: expect.stringMatching(/^must be /) }])
})

test('one error names every wrong filter', async () => {
  const { body } = await service.getHistory(tenant.prompt, tenant.key, '?action=a&branch=&since=b&until=c')
  expect(body.error.details.map(({ path }: { path: string }) => path)).toEqual(['action', 'since', 'until', 'branch'])
})

test('the key is checked first, then the prompt, then the filters, then what the caller has', async () => {
  const other = await service.createTenant()
  const wrong = '?action=merged'
  expect((await service.getHistory(tenant.prompt, 'psk_wrong', wrong)).status).toBe(401)
  expect((await service.getHistory(other.prompt, tenant.key, wrong)).status).toBe(404)
  const path = `/api/v1/prompts/${tenant.prompt}/history${wrong}`
  expect((await service.call('GET', path, { key: tenant.key, headers: { 'if-none-match': '*' } })).status).toBe(422)
})

test('a branch that no text can name has no entries', async () => {
  const { status, body } = await service.getHistory(tenant.prompt, tenant.key, '?branch=%ff')
  expect([status, body.pagination.total_count]).toEqual([200, 0])
})

test('the links keep the filters', async () => {
  const { headers } = await service.getHistory(tenant.prompt, tenant.key, `?branch=${branch}&action=deployed&limit=2`)
  const next = /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1] as string
  const { body } = await service.call('GET', next, { key: tenant.key })
  expect(body.pagination).toEqual({ current_page: 2, total_pages: 3, total_count: 5, per_page: 2 })
})

test('an organisation that asks for many pages with filters has two at a time, and others go on', () => {
  const started: unknown[] = []
  const sql = (_: TemplateStringsArray, promptId: unknown) => {
    started.push(promptId)
    return new Promise(() => {})
  }
  const { readPage } = createHistoryReader({ sql } as unknown as Db)
  const query = parseHistoryQuery('?branch=main')
  const reads = [1, 1, 1, 1, 2, 2].map((id) =>
    readPage({ organisationId: id, promptId: id, prompt: 'pmt_x', version: 'v' }, query),
  )
  // Those that wait give up after the test, which nobody is to hear of.
  void Promise.allSettled(reads)
  expect(started).toEqual([1, 1, 2])
})
