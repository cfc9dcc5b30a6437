import { expect, test } from 'bun:test'
import { findWrongChanges, type PlacedEntry } from '../../src/history/changes.ts'
import type { Answer } from '../client.ts'
import { entry, type Tenant } from '../service.ts'
import { useNewTenant, useService, useTenant } from '../use.ts'

const service = useService()
const tenant = useTenant(service)
const own = useNewTenant(service)

const pr = { pr_number: 12, pr_url: 'https://example.com/pull/12' }

const post = (json: unknown, { prompt, key }: Tenant = tenant) => service.post(`/prompts/${prompt}/history`, key, json)

test('records an entry, returns it, and shows it in the next read', async () => {
  service.clock.set('2026-11-14T23:35:00.123Z')
  const before = await service.getHistory(own.prompt, own.key)
  const [title, authors] = ['Greet by first name', ['Bob']]
  const given = entry({ action: 'pr_merged', ...pr })
  const { status, headers, body } = await post({ ...given, title, authors }, own)
  const shown = { ...given, id: expect.any(Number), created_at: '2026-11-14T23:35:00.123Z' }
  expect([status, headers.get('idempotent-replayed'), body]).toEqual([
    201,
    null,
    { data: { ...shown, title, authors } },
  ])
  const after = await service.getHistory(own.prompt, own.key)
  expect([before.body.data, after.body.data]).toEqual([[], [shown]])
  const titled = await service.getHistory(own.prompt, own.key, '?include=title')
  expect(titled.body.data).toEqual([{ ...shown, title, authors }])
  expect(titled.headers.get('link')).toContain('include=title')
})

const eve = { name: 'Eve', email: 'eve@example.com' }

test('a replayed entry is answered as it stands, and nothing is doubled', async () => {
  const given = entry({ created_at: '2026-01-01T00:00:00Z' })
  const first = await post(given, own)
  const again = await Promise.all(
    Array.from({ length: 10 }, () => post({ ...given, created_at: '2026-02-02T00:00:00Z', user: eve }, own)),
  )
  for (const { status, headers, text } of again) {
    expect([status, headers.get('idempotent-replayed'), text]).toEqual([201, 'true', first.text])
  }
  // Another action, commit, branch, pull request or prompt makes another entry.
  await post({ ...given, branch_name: 'x' }, own)
  await post({ ...given, action: 'pr_opened', ...pr }, own)
  await post({ ...given, action: 'pr_opened', ...pr, pr_number: 13 }, own)
  await post({ ...given, commit_sha: 'other' }, own)
  await post(given)
  expect((await service.getHistory(own.prompt, own.key)).body.pagination.total_count).toBe(5)
})

test('a retry of a deploy is no entry, and a rollback is', async () => {
  const [a, x] = [entry({ commit_sha: 'a' }), entry({ commit_sha: 'x' })]
  const at = (time: string) => service.clock.set(`2026-11-14T${time}:00.000Z`)
  const deploy = async (given: object) => {
    const answer = await service.post(`/prompts/${own.prompt}/history`, own.key, given)
    return [answer.status, answer.headers.get('idempotent-replayed'), answer.body.data?.id]
  }
  at('10:00')
  const first = await deploy(a)
  at('10:05')
  expect(await deploy(a)).toEqual([201, 'true', first[2]])
  at('11:00')
  expect(await deploy(x)).toEqual([201, null, expect.any(Number)])
  at('12:00')
  const rollback = await deploy(a)
  expect(rollback).toEqual([201, null, expect.any(Number)])
  expect(await deploy(a)).toEqual([201, 'true', rollback[2]])
  const { body } = await service.getHistory(own.prompt, own.key)
  expect(body.data.map(({ commit_sha }: { commit_sha: string }) => commit_sha)).toEqual(['a', 'x', 'a'])
})

test('a clock that is up to five minutes ahead counts as now', async () => {
  service.clock.set('2026-11-14T10:00:00.000Z')
  const { body } = await post(entry({ created_at: '2026-11-14T10:05:00.000Z' }), own)
  expect(body.data.created_at).toBe('2026-11-14T10:00:00.000Z')
  expect((await post(entry({ created_at: '2026-11-14T10:05:00.001Z' }), own)).status).toBe(422)
  service.clock.reset()
})

test('a short hash is answered with the whole one, also when that comes later', async () => {
  const whole = '45c48cce2e2d7fbdea1afc51c7c6ad26b0d94e11'
  for (const [sent, kept] of [
    ['45c48cc', '45c48cc'],
    [whole, whole],
    [whole.slice(0, 8).toUpperCase(), whole],
  ]) {
    expect((await post(entry({ commit_sha: sent }), own)).body.data.commit_sha).toBe(kept)
  }
  expect((await service.getHistory(own.prompt, own.key)).body.pagination.total_count).toBe(1)
})

test.each(['0', 'f'])('a short hash that could also be of a commit that goes on with %s is neither', async (next) => {
  const short = '45c48cc'
  const [whole, other] = [short.padEnd(40, '8'), short.padEnd(40, next)]
  for (const [minute, commit_sha] of [other, whole, short, whole].entries()) {
    const { headers } = await post(entry({ commit_sha, created_at: `2026-01-01T00:0${minute}:00Z` }), own)
    expect([commit_sha, headers.get('idempotent-replayed')]).toEqual([commit_sha, null])
  }
})

test('concurrent deploys of one commit, by any of its names, are one entry', async () => {
  const whole = 'abcdef0123456789abcdef0123456789abcdef01'
  const names = Array.from({ length: 24 }, (_, number) => whole.slice(0, number % 2 === 0 ? 40 : 7))
  const answers = await Promise.all(names.map((commit_sha) => post(entry({ commit_sha }), own)))
  expect(new Set(answers.map(({ status, body }) => `${status} ${body.data.id}`)).size).toBe(1)
  expect(answers.filter(({ headers }) => !headers.has('idempotent-replayed'))).toHaveLength(1)
})

test.each([
  ['nothing', {}, '/action'],
  ['an unknown action', entry({ action: 'merged' }), '/action'],
  ['no user', entry({ user: undefined }), '/user'],
  ['a user without an address', entry({ user: { name: 'Ada' } }), '/user/email'],
  ['an empty commit', entry({ commit_sha: '' }), '/commit_sha'],
  ['a branch with a control character', entry({ branch_name: 'a\u0000b' }), '/branch_name'],
  ['a name with half a character', entry({ user: { name: '\ud800', email: 'a@b.c' } }), '/user/name'],
  ['a title of more than 200 characters', entry({ title: 'x'.repeat(201) }), '/title'],
  ['a title of two lines', entry({ title: 'a\nb' }), '/title'],
  ['deployed with a pull request', entry(pr), '/pr_number'],
  ['a pull request without its number', entry({ action: 'pr_opened', pr_url: pr.pr_url }), '/pr_number'],
  ['a pull request without its address', entry({ action: 'pr_closed', pr_number: 1 }), '/pr_number'],
  ['a pull request number of 0', entry({ action: 'pr_opened', ...pr, pr_number: 0 }), '/pr_number'],
  ['a pull request number as text', entry({ action: 'pr_opened', ...pr, pr_number: '1' }), '/pr_number'],
  ['a pull request at no address', entry({ action: 'pr_opened', ...pr, pr_url: 'javascript:1' }), '/pr_url'],
  ['a time without its zone', entry({ created_at: '2026-01-01T00:00:00' }), '/created_at'],
  ['a time in the future', entry({ created_at: '2100-01-01T00:00:00Z' }), '/created_at'],
  ['30 February', entry({ created_at: '2026-02-30T00:00:00Z' }), '/created_at'],
])('rejects %s, and names the place', async (_, given, path) => {
  const { status, body } = await post(given)
  expect([status, body.error.code]).toEqual([422, 'validation_error'])
  expect(body.error.details.map((detail: { path: string }) => detail.path)).toContain(path)
})

test('an unchanged history is a 304, a changed one is sent anew; only the client may cache either', async () => {
  await post(entry(), own)
  const path = `/api/v1/prompts/${own.prompt}/history`
  const revalidate = (etag: string, query = '') =>
    service.call('GET', path + query, { key: own.key, headers: { 'if-none-match': etag } })
  const etag = (await revalidate('"0"')).headers.get('etag') as string
  const cachingOf = ({ headers }: Answer) => [headers.get('cache-control'), headers.get('vary')]
  for (const known of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
    const unchanged = await revalidate(known, '?limit=3')
    expect([unchanged.status, unchanged.text, unchanged.headers.get('etag')]).toEqual([304, '', etag])
    expect(cachingOf(unchanged)).toEqual(['private, no-cache', 'Authorization'])
  }
  const titled = await revalidate(etag, '?include=title')
  expect([titled.status, titled.body.data[0].title]).toEqual([200, null])
  expect(cachingOf(titled)).toEqual(['private, no-cache', 'Authorization'])
  const titledEtag = titled.headers.get('etag') as string
  expect((await revalidate(titledEtag, '?include=title&limit=3')).status).toBe(304)
  expect((await revalidate(titledEtag)).status).toBe(200)
  // The entry is of an earlier time, so that only the version shows the change.
  await post(entry({ created_at: '2020-01-01T00:00:00Z' }), own)
  const { status, headers, body } = await revalidate(etag)
  expect([status, body.pagination.total_count]).toEqual([200, 2])
  expect(headers.get('etag')).not.toBe(etag)
  expect((await service.call('GET', path, { headers: { 'if-none-match': '*' } })).status).toBe(401)
})

test('which entries are changes is known in any order of arrival, after removals, and for every live branch', async () => {
  const { key } = await service.createKey(own, ['history:write', 'history:delete', 'prompts:write'])
  const path = `/prompts/${own.prompt}`
  const readWrong = async (liveBranch: string | null) => {
    const entries = await service.services.db.sql<PlacedEntry>`
      select h.* from history_rows h join prompts p on p.id = h.prompt_id where p.public_id = ${own.prompt}`
    return findWrongChanges(entries, liveBranch)
  }
  let liveBranch: string | null = null
  const ids: number[] = []
  for (let step = 0; step < 120; step += 1) {
    // The same steps in every run, in no order of time.
    const [commit, branch, minute] = [step % 7, step % 3, (step * 37) % 61].map(String)
    const where = branch === '0' ? { action: 'pr_opened', ...pr, branch_name: 'topic' } : { branch_name: `b${branch}` }
    const created_at = new Date(Date.UTC(2026, 0, 1, 0, Number(minute))).toISOString()
    const { body } = await post(entry({ ...where, commit_sha: `c${commit}`, created_at }), own)
    ids.push(body.data.id)
    if (step % 11 === 0) await service.call('DELETE', `/api/v1${path}/history/${ids[(step * 5) % ids.length]}`, { key })
    if (step % 17 === 0) {
      liveBranch = [null, 'b1', 'b2'][step % 3] as string | null
      await service.patch(path, key, { live_branch: liveBranch })
    }
    expect(await readWrong(liveBranch), `step ${step}`).toEqual([])
  }
})
