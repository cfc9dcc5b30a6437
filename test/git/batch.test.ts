import { expect, test } from 'bun:test'
import { invalid } from '../client.ts'
import { createHook, type Entry, paths } from '../github/hook.ts'
import { entry } from '../service.ts'
import { useService, useTenant } from '../use.ts'
import { insertEndpoints } from '../webhooks/emit.ts'
import { createClone, gitEnvironment, syncClone } from './clone.ts'

const service = useService()
const tenant = useTenant(service)
const other = useTenant(service)

const send = (json: object, key = tenant.key) => service.post('/history/batch', key, json)

const of = (commit_sha: string, more: object = {}) => ({ prompt_id: tenant.prompt, ...entry({ commit_sha, ...more }) })
const pullRequest = { action: 'pr_merged', pr_number: 7, pr_url: 'https://github.com/acme/prompts/pull/7' }

async function readCommits(): Promise<string[]> {
  const { body } = await service.getHistory(tenant.prompt, tenant.key, '?limit=100')
  return body.data.map(({ action, commit_sha }: Record<string, string>) => `${action} ${commit_sha}`).sort()
}

test('says of each entry what became of it, and of a dry run what would', async () => {
  const first = { entries: [of('b1'), of('b2'), of('b2'), of('b3')] }
  // A dry run that wrote and was rolled back would have taken ids, and on the embedded engine everybody's time.
  const readLastId = () => service.services.db.sql`select last_value from history_entries_id_seq`
  const lastId = await readLastId()
  expect(await send({ ...first, dry_run: true })).toMatchObject({
    status: 200,
    body: { data: { outcomes: ['added', 'added', 'known', 'added'] } },
  })
  expect(await readLastId()).toEqual(lastId)
  expect(await readCommits()).toEqual([])
  expect((await send(first)).body).toEqual({ data: { outcomes: ['added', 'added', 'known', 'added'] } })
  const second = { entries: [of('b1'), of('b3', { user: { name: 'Eve', email: 'eve@example.com' } }), of('b4')] }
  expect((await send({ ...second, dry_run: true })).body).toEqual({ data: { outcomes: ['known', 'changed', 'added'] } })
  expect((await send(second)).body).toEqual({ data: { outcomes: ['known', 'changed', 'added'] } })
  const merge = { entries: [of('b5', { ...pullRequest, covers: ['b1', 'B2', 'b6'] }), of('b6')] }
  expect((await send(merge)).body).toEqual({ data: { outcomes: ['changed', 'covered'] } })
  const again = { entries: [of('B1'), of('b2'), of('B6')] }
  expect((await send(again)).body).toEqual({ data: { outcomes: ['covered', 'covered', 'covered'] } })
  expect(await readCommits()).toEqual(['deployed b3', 'deployed b4', 'pr_merged b5'])
})

test('a title completes an entry that has none, also one that a caller recorded, and then stands', async () => {
  const own = await service.createTenant()
  const created_at = '2026-01-01T00:00:00Z'
  const given = [entry({ commit_sha: 't1', created_at }), entry({ commit_sha: 't2', title: 'Given', created_at })]
  await service.addHistory(own.prompt, given)
  const read = async () => {
    const { headers, body } = await service.getHistory(own.prompt, own.key, '?include=title')
    return [headers.get('etag'), Object.fromEntries(body.data.map((one: Entry) => [one.commit_sha, one.title]))]
  }
  const give = async (title: string) => {
    const entries = ['t1', 't2', 't3'].map((sha) => ({ ...of(sha, { title, created_at }), prompt_id: own.prompt }))
    return (await send({ entries }, own.key)).body.data.outcomes
  }
  const [before] = await read()
  expect(await give('First')).toEqual(['changed', 'known', 'added'])
  const [after, titles] = await read()
  expect(titles).toEqual({ t1: 'First', t2: 'Given', t3: 'First' })
  expect(after).not.toBe(before)
  expect(await give('Second')).toEqual(['known', 'known', 'changed'])
})

test('is recorded all or nothing, and another organisation’s prompt is like none', async () => {
  const before = await readCommits()
  const shapeOf = ({ status, text, headers }: Awaited<ReturnType<typeof send>>) => [
    status,
    text.replace(headers.get('x-request-id') as string, 'ID'),
  ]
  const foreign = await send({ entries: [of('d1'), { ...of('d2'), prompt_id: other.prompt }] })
  const unknown = await send({ entries: [of('d1'), { ...of('d2'), prompt_id: 'pmt_none' }] })
  expect(foreign.status).toBe(404)
  expect(shapeOf(foreign)).toEqual(shapeOf(unknown))
  const late = await send({ entries: [of('d1'), of('d2', { created_at: 'yesterday' })] })
  expect(late).toMatchObject(invalid('/entries/1/created_at'))
  for (const entries of [Array.from({ length: 501 }, (_, index) => of(`d${index}`)), 'all of them']) {
    expect(await send({ entries })).toMatchObject(invalid('/entries'))
  }
  expect(await readCommits()).toEqual(before)
})

test('texts are rejected unless the organisation stores them, and nothing is recorded', async () => {
  const own = await service.createTenant()
  const first = { ...of('first'), prompt_id: own.prompt }
  for (const more of [{ entries: [first, { ...first, commit_sha: 'second', text: 'a' }] }, { with_texts: true }]) {
    const refused = await send({ entries: [first], ...more }, own.key)
    expect([refused.status, refused.body.error.details]).toEqual([422, []])
  }
  expect((await service.getHistory(own.prompt, own.key)).body.data).toEqual([])
})

test('says of files whether they are there, and what is older than the last word changes nothing', async () => {
  const mark = (...seen: [state: string, seen_at: string][]) =>
    send({ entries: [], files: seen.map(([state, seen_at]) => ({ prompt_id: tenant.prompt, state, seen_at })) })
  const expectState = async (state: string) => {
    const { body } = await service.get(`/prompts/${tenant.prompt}`, tenant.key)
    expect(body.data.file_state).toBe(state)
  }
  await mark(['removed', '2026-01-02T00:00:00Z'])
  await expectState('removed')
  await mark(['present', '2026-01-01T00:00:00Z'])
  await expectState('removed')
  await mark(['present', '2026-01-03T00:00:00Z'])
  await expectState('present')
  // Of what is said twice, the later holds.
  await mark(['removed', '2026-01-05T00:00:00Z'], ['present', '2026-01-04T00:00:00Z'])
  await expectState('removed')
  // A clock that is ahead does not keep what is seen later from being believed.
  await mark(['removed', '2036-01-01T00:00:00Z'])
  await mark(['present', new Date(Date.now() + 60_000).toISOString()])
  await expectState('present')
  expect(await mark(['present', 'soon'])).toMatchObject(invalid('/files/0/seen_at'))
})

test('a first sync in several calls announces only the newest change of each prompt', async () => {
  const { tenant, prompts } = await createHook(service)
  const { db } = service.services
  await insertEndpoints(db, tenant.org)
  const clone = createClone('https://github.com/Acme/Prompts.git')
  const first = Math.floor(Date.now() / 1_000) - 10 * 3_600
  const commits = Array.from({ length: 300 }, (_, n) => {
    const by = `committer Ada <ada@example.com> ${first + n} +0000`
    const files = [paths.greeting, paths.farewell].map((path) => `M 100644 inline ${path}\ndata 3\n${100 + n}\n`)
    return `commit refs/heads/main\n${by}\ndata 3\nSay\n${files.join('')}`
  })
  const stdin = new Blob([commits.join('')])
  const imported = Bun.spawn(['git', '-C', clone.folder, 'fast-import', '--quiet'], { env: gitEnvironment, stdin })
  expect(await imported.exited).toBe(0)
  expect((await syncClone(clone, service.url, tenant.key)).added).toBe(600)
  const events = await db.sql`
    select v.data -> 'prompt' ->> 'id' as prompt from webhook_events v
    join organisations o on o.id = v.organisation_id where o.public_id = ${tenant.org} order by prompt`
  expect(events).toEqual([prompts.greeting, prompts.farewell].sort().map((prompt) => ({ prompt })))
})
