import { expect, test } from 'bun:test'
import { createApp } from '../../src/app.ts'
import type { Db } from '../../src/db/client.ts'
import type { SyncChange, SyncOptions } from '../../src/git/sync_options.ts'
import { recordHistoryBatch } from '../../src/history/batch.ts'
import { eraseTexts, forgetTexts } from '../../src/history/erase.ts'
import type { HistoryBatch } from '../../src/history/schema_batch.ts'
import { type Call, openRest } from '../../src/lib/rest.ts'
import { setStoreText } from '../../src/orgs/manage.ts'
import { requirePrompt } from '../../src/prompts/find.ts'
import { invalid } from '../client.ts'
import { createHook, type Entry, paths } from '../github/hook.ts'
import { type CommitGiven, merged, push } from '../github/payloads.ts'
import { engine } from '../harness.ts'
import { rejectionOf, untilLocked } from '../program.ts'
import { entry, type Tenant } from '../service.ts'
import { useService } from '../use.ts'
import { type Clone, createClone, grow, syncClone } from './clone.ts'

const service = useService()
const { greeting, farewell, other } = paths

const storeText = ({ org }: Tenant, isOn = true) => setStoreText(service.services.db, service.services.clock, org, isOn)

async function sync(clone: Clone, { key }: Tenant, more: Partial<SyncOptions> = {}) {
  const rest = openRest(service.url, key, new AbortController().signal)
  const batches: HistoryBatch[] = []
  const call: Call = (method, path, body) => {
    if (path === '/history/batch') batches.push(body as HistoryBatch)
    return rest(method, path, body)
  }
  const changes: SyncChange[] = []
  const result = await syncClone(clone, service.url, key, {
    call,
    withTexts: true,
    ...more,
    onChange: (change) => changes.push(change),
  })
  const sent = batches.flatMap(({ entries }) => entries.flatMap(({ text }) => text ?? []))
  return { result, notices: changes.filter(({ change }) => change === 'no_text'), sent }
}

/** The texts of a prompt's entries, oldest first. */
async function textsOf(prompt: string, { key }: Tenant): Promise<(string | null)[]> {
  const { body } = await service.getHistory(prompt, key)
  const diffs = body.data.map(async ({ id }: Entry) => (await diff(prompt, id, key)).body.data.after)
  return (await Promise.all(diffs)).reverse()
}

const diff = (prompt: string, id: number, key: string, query = '') =>
  service.get(`/prompts/${prompt}/history/${id}/diff${query}`, key)

test('a sync stores the text after each change, under every name of the file, and sends none twice', async () => {
  const { tenant, prompts } = await createHook(service)
  const all = '\ufefftwo,é,👋\r\nthree'
  const clone = grow(`
    main: Begin | prompts/old.md=one\\n
    main: Move | prompts/old.md>prompts/moved.md
    topic: Half | prompts/moved.md=two\\n
    topic: All | prompts/moved.md=${all.replace('\r\n', '\\r\\n')}
    main: Say more | README.md
    main: Merge pull request #7 from acme/topic | +topic
    main: Move again | prompts/moved.md>${greeting}
    main: Empty it | ${greeting}=
    main: Remove it | -${greeting}
    main: Back | ${greeting}=one\\n`)
  expect(await rejectionOf(sync(clone, tenant))).toContain(`orgs update ${tenant.org} --store-text on`)
  expect((await service.getHistory(prompts.greeting, tenant.key)).body.data).toEqual([])
  await storeText(tenant)
  const first = await sync(clone, tenant)
  expect(await textsOf(prompts.greeting, tenant)).toEqual(['one\n', 'one\n', all, all, '', null, 'one\n'])
  expect([first.result.texts, first.sent.length, first.notices]).toEqual([6, 6, []])
  const again = await sync(clone, tenant)
  expect([again.sent, again.result]).toMatchObject([[], { texts: 0, known: 7 }])
})

/** A tenant that stores texts, and a clone of the repository that its prompts are linked to. */
async function createStoring() {
  const { tenant, prompts, send } = await createHook(service)
  await storeText(tenant)
  /** Delivers commits as those that a pull request was rebased to. */
  const deliver = async (commits: CommitGiven[]) => {
    const after = commits.at(-1)?.id as string
    await send('push', push({ after, commits }))
    await send('pull_request', merged({ mergeSha: after, commits: commits.length }))
  }
  return { tenant, prompts, clone: createClone(), deliver }
}

// test/history/reconcile.test.ts has the other orders.
test.each([true, false])(
  'a rebased pull request has the text of its last change (webhook first: %p)',
  async (isFirst) => {
    const { tenant, prompts, clone, deliver } = await createStoring()
    clone.change('Begin', greeting, { text: 'one' })
    const commits = [greeting, greeting, 'README.md'].map((path, index) => ({
      id: clone.change(`Change ${index}`, path, { text: `text ${index}` }),
      modified: [path],
    }))
    if (isFirst) await deliver(commits)
    await sync(clone, tenant)
    if (!isFirst) await deliver(commits)
    expect(await textsOf(prompts.greeting, tenant)).toEqual(['one', 'text 1'])
    expect((await sync(clone, tenant)).sent).toEqual([])
    expect(await textsOf(prompts.greeting, tenant)).toEqual(['one', 'text 1'])
  },
)

test('what is not UTF-8, too large or binary is left out, and said once for each prompt, not by each sync', async () => {
  const { tenant, prompts, clone } = await createStoring()
  for (const round of ['1', '2']) {
    clone.write(greeting, `a\0${round}`)
    clone.write(farewell, 'x'.repeat(256 * 1024) + round)
    await Bun.write(`${clone.folder}/${other}`, new Uint8Array([0xff, 0xfe, round.charCodeAt(0)]))
    clone.git('add', other)
    clone.commit(`Round ${round}`)
  }
  clone.change('Smaller', farewell, { text: 'x'.repeat(256 * 1024) })
  const { notices } = await sync(clone, tenant)
  const problems = notices.map((notice) => [notice.path, 'problem' in notice && notice.problem?.split(' at ')[0]])
  expect(problems.sort()).toEqual([
    [farewell, 'is larger than 256 KiB'],
    [greeting, 'is binary'],
    [other, 'is not UTF-8'],
  ])
  expect(await textsOf(prompts.farewell, tenant)).toEqual([null, null, 'x'.repeat(256 * 1024)])
  expect(await textsOf(prompts.greeting, tenant)).toEqual([null, null])
  expect(await sync(clone, tenant)).toMatchObject({ notices: [], result: { unreadable: 6 } })
  expect((await sync(clone, tenant, { isDryRun: true })).notices).toEqual(notices)
  clone.change('Binary again', greeting, { text: 'b\0' })
  expect((await sync(clone, tenant)).notices).toMatchObject([{ path: greeting }])
})

test('a text that JSON makes too large for a request is left out', async () => {
  const { tenant, prompts, clone } = await createStoring()
  clone.change('Quoted', farewell, { text: '"'.repeat(256 * 1024) })
  clone.change('Escaped', greeting, { text: '\x1b'.repeat(256 * 1024) })
  expect((await sync(clone, tenant)).notices).toMatchObject([{ path: greeting }])
  expect(await textsOf(prompts.farewell, tenant)).toEqual(['"'.repeat(256 * 1024)])
})

test('a sync that may not store texts, or not write histories, fails before it creates a prompt', async () => {
  const tenant = await service.createTenant()
  const { key } = await service.createKey(tenant, ['prompts:read', 'prompts:write'])
  const clone = createClone()
  clone.change('Begin', 'a.md')
  const create = { createGlobs: ['*.md'] }
  expect(await rejectionOf(sync(clone, { ...tenant, key }, { ...create, withTexts: false }))).toContain('history:write')
  const writer = await service.createKey(tenant, ['prompts:read', 'prompts:write', 'history:write'])
  const failed = sync(clone, { ...tenant, key: writer.key }, create)
  expect(await rejectionOf(failed)).toContain(`orgs update ${tenant.org} --store-text on`)
  const { body } = await service.get('/prompts', key)
  expect(body.data.map(({ path }: { path: string | null }) => path)).toEqual([null])
})

const [one, two] = ['Hello.\nBye.\n', 'Hello, {name}.\nBye.\n']

/** A tenant with three changes, the last without a text; and a pull request that was opened before the second. */
async function createStory() {
  const tenant = await service.createTenant()
  await storeText(tenant)
  const { key, prompt } = tenant
  const of = (commit_sha: string, minute: number, text?: string) => ({
    ...{ prompt_id: prompt, ...entry({ commit_sha, created_at: `2026-01-01T00:0${minute}:00Z` }) },
    ...(text !== undefined && { text }),
  })
  const entries = [of('aaaaaaa1', 1, one), of('bbbbbbb2', 3, two), of('ccccccc3', 5)]
  const send = (more: object = {}) => service.post('/history/batch', key, { entries, with_texts: true, ...more })
  const answers = [await send({ dry_run: true }), await send(), await send({ dry_run: true })]
  const opened = { action: 'pr_opened', pr_number: 1, pr_url: 'https://example.com/1', commit_sha: 'ddddddd4' }
  await service.addHistory(prompt, [entry({ ...opened, created_at: '2026-01-01T00:02:00Z' })])
  const { body } = await service.getHistory(prompt, key)
  const [third, second, pull, first] = body.data.map(({ id }: Entry) => id)
  return { tenant, answers: answers.map((answer) => answer.body.data), send, ids: { first, pull, second, third } }
}

test('the difference is to the change before, to a base, or to nothing before the first one', async () => {
  const { tenant, answers, ids } = await createStory()
  const { prompt, key } = tenant
  const added = { outcomes: ['added', 'added', 'added'], without_text: [2] }
  expect(answers).toEqual([added, added, { outcomes: ['known', 'known', 'known'], without_text: [2] }])
  const header = `--- ${prompt}\n+++ ${prompt}\n`
  const forward = `${header}@@ -1,2 +1,2 @@\n-Hello.\n+Hello, {name}.\n Bye.\n`
  const { data } = (await diff(prompt, ids.second, key)).body
  expect(data).toMatchObject({
    entry: { id: ids.second },
    base: { id: ids.first },
    before: one,
    after: two,
    diff: forward,
  })
  expect((await diff(prompt, ids.first, key)).body.data).toMatchObject({
    ...{ base: null, before: null, after: one, diff: `${header}@@ -0,0 +1,2 @@\n+Hello.\n+Bye.\n` },
  })
  const back = (await diff(prompt, ids.first, key, `?base=${ids.second}`)).body.data
  expect(back).toMatchObject({ base: { id: ids.second }, before: two, after: one })
  expect(back.diff).toContain('\n+Hello.\n')
  expect((await diff(prompt, ids.first, key, `?base=${ids.first}`)).body.data.diff).toBe('')
  expect((await diff(prompt, ids.third, key)).body.data).toMatchObject({ before: two, after: null, diff: null })
  expect((await diff(prompt, ids.pull, key)).body.data).toMatchObject({ before: one, after: null, diff: null })
  expect((await diff(prompt, 999_999_999, key)).status).toBe(404)
  expect(await diff(prompt, ids.first, key, '?base=999999999')).toMatchObject(invalid('base'))
})

test('a difference needs a permit for heavy reads', async () => {
  const { tenant, ids } = await createStory()
  const { organisationId } = await requirePrompt(service.services.db.sql, tenant.prompt)
  const asked: number[] = []
  const heavyRead: Db['heavyRead'] = (organisation, read) => {
    asked.push(organisation)
    return read()
  }
  const url = `http://localhost/api/v1/prompts/${tenant.prompt}/history/${ids.second}/diff`
  const request = new Request(url, { headers: { authorization: `Bearer ${tenant.key}` } })
  const { status } = await createApp({ ...service.services, db: { ...service.services.db, heavyRead } }).fetch(request)
  expect([status, asked]).toEqual([200, [organisationId]])
})

test('another organisation has no difference, and an odd text is rejected', async () => {
  const { tenant, send, ids } = await createStory()
  const stranger = await service.createTenant()
  expect((await diff(tenant.prompt, ids.second, stranger.key)).status).toBe(404)
  const of = (text: string) => ({ prompt_id: tenant.prompt, ...entry(), text })
  for (const text of ['a\0b', '\ud800', 'é'.repeat(128 * 1024 + 1)]) {
    expect(await send({ entries: [of(one), of(text)] })).toMatchObject(invalid('/entries/1/text'))
  }
})

test('a text that comes with a short hash belongs to the entry with the whole one', async () => {
  const tenant = await service.createTenant()
  const { key, prompt } = tenant
  await storeText(tenant)
  const hashes = ['1', '2'].map((last) => last.padStart(40, 'c0ffee'))
  await service.addHistory(prompt, [entry({ commit_sha: hashes[0] })])
  const send = (commit_sha: string | undefined, text: string) =>
    service.post('/history/batch', key, { entries: [{ prompt_id: prompt, ...entry({ commit_sha }), text }] })
  expect((await send(hashes[0]?.slice(0, 9), one)).body.data).toEqual({ outcomes: ['known'] })
  expect(await textsOf(prompt, tenant)).toEqual([one])
  // Now the short hash fits two commits, and is a third one.
  await send(hashes[1], two)
  await send(hashes[0]?.slice(0, 9), 'three')
  expect(await textsOf(prompt, tenant)).toEqual([one, two, 'three'])
})

test('a rollback, and a deploy of another branch, have the text of their commit', async () => {
  const { tenant } = await createStory()
  const again = (more: object) => entry({ commit_sha: 'AAAAAAA1', created_at: '2026-01-01T00:06:00Z', ...more })
  await service.addHistory(tenant.prompt, [again({}), again({ branch_name: 'release' })])
  expect(await textsOf(tenant.prompt, tenant)).toEqual([one, null, two, null, one, one])
})

test('texts are erased for a prompt, and with the setting', async () => {
  const { db, clock } = service.services
  const { tenant, send } = await createStory()
  const prompt = await requirePrompt(db.sql, tenant.prompt)
  expect(await forgetTexts(db, clock, prompt)).toBe(2)
  expect(await textsOf(tenant.prompt, tenant)).toEqual([null, null, null, null])
  expect((await send()).body.data.without_text).toEqual([2])
  await storeText(tenant, false)
  expect((await send()).status).toBe(422)
  expect(await eraseTexts(db, prompt.organisationId)).toBe(2)
})

// The embedded engine runs one transaction at a time.
if (engine === 'postgres') {
  test('no text is left of a batch that began before the setting was turned off', async () => {
    const { db, clock } = service.services
    const { tenant } = await createStory()
    const { organisationId, ...prompt } = await requirePrompt(db.sql, tenant.prompt)
    const { erased } = await db.transaction(async (sql) => {
      const inside = { ...db, transaction: (work: (inner: typeof sql) => unknown) => work(sql) } as Db
      const entries = [{ prompt_id: tenant.prompt, ...entry(), text: 'late' }]
      await recordHistoryBatch(inside, clock, organisationId, { entries }, () => ({ organisationId, ...prompt }))
      const erased = storeText(tenant, false).then(() => eraseTexts(db, organisationId))
      await untilLocked(db, 'set store_text')
      return { erased }
    })
    expect(await erased).toBe(3)
  })
}
