import { expect, test } from 'bun:test'
import { createApp } from '../../src/app.ts'
import type { Db } from '../../src/db/client.ts'
import type { SyncChange } from '../../src/git/sync_entries.ts'
import { openHttpTarget, type SyncTarget } from '../../src/git/target.ts'
import type { HistoryBatch } from '../../src/history/schema.ts'
import { eraseTexts, forgetTexts, hashText, pruneTexts, recordTexts } from '../../src/history/texts.ts'
import { openRest } from '../../src/lib/rest.ts'
import { nextTurn } from '../../src/lib/turns.ts'
import { setStoreText } from '../../src/orgs/manage.ts'
import { requirePrompt } from '../../src/prompts/find.ts'
import { invalid } from '../client.ts'
import { createHook, type Entry, paths } from '../github/hook.ts'
import { type CommitGiven, merged, push } from '../github/payloads.ts'
import { engine } from '../harness.ts'
import { rejectionOf } from '../program.ts'
import { entry, type Tenant } from '../service.ts'
import { useService } from '../use.ts'
import { type Clone, createClone, syncClone } from './clone.ts'

const service = useService()
const { greeting, farewell, other } = paths

const storeText = ({ org }: Tenant, isOn = true) => setStoreText(service.services.db, service.services.clock, org, isOn)

async function sync(clone: Clone, { key }: Tenant) {
  const { signal } = new AbortController()
  const target = openHttpTarget(openRest(service.url, key, signal))
  const batches: HistoryBatch[] = []
  const recordBatch: SyncTarget['recordBatch'] = (batch) => {
    batches.push(batch)
    return target.recordBatch(batch)
  }
  const changes: SyncChange[] = []
  const result = await syncClone(clone, service.url, key, {
    target: { ...target, recordBatch },
    withTexts: true,
    onChange: (change) => changes.push(change),
  })
  return { result, notices: changes.filter(({ change }) => change === 'no_text'), batches }
}

/** The texts of a prompt's entries, oldest first. */
async function textsOf(prompt: string, { key }: Tenant): Promise<(string | null)[]> {
  const { body } = await service.getHistory(prompt, key)
  const diffs = body.data.map(async ({ id }: Entry) => (await diff(prompt, id, key)).body.data.after)
  return (await Promise.all(diffs)).reverse()
}

const diff = (prompt: string, id: number, key: string, query = '') =>
  service.get(`/prompts/${prompt}/history/${id}/diff${query}`, key)

const countTexts = async ({ org }: Tenant) => {
  const [row] = await service.services.db.sql<{ n: number }>`
    select count(*)::int as n from prompt_texts t join organisations o on o.id = t.organisation_id where o.public_id = ${org}`
  return row?.n
}

test('a sync stores the text after each change, under every name of the file, and once', async () => {
  const { tenant, prompts } = await createHook(service)
  const clone = createClone()
  clone.change('Begin', 'old.md', { text: 'one\n' })
  clone.move('old.md', 'moved.md', 'Move')
  clone.branch('topic')
  clone.change('Half', 'moved.md', { text: 'two\n' })
  clone.change('All', 'moved.md', { text: '\ufefftwo é 👋\r\nthree' })
  clone.backTo('main')
  clone.change('Say more', 'README.md')
  clone.merge('topic', 'Merge pull request #7 from acme/topic')
  clone.git('mv', 'moved.md', greeting.split('/')[1] as string)
  clone.git('rm', '--quiet', '--cached', greeting.split('/')[1] as string)
  clone.change('Move again', greeting, { text: '\ufefftwo é 👋\r\nthree' })
  clone.change('Empty it', greeting, { text: '' })
  clone.git('rm', '--quiet', greeting)
  clone.commit('Remove it')
  clone.change('Back', greeting, { text: 'one\n' })
  expect(await rejectionOf(sync(clone, tenant))).toContain('orgs update ORG --store-text on')
  await storeText(tenant)
  const first = await sync(clone, tenant)
  const all = '\ufefftwo é 👋\r\nthree'
  expect(await textsOf(prompts.greeting, tenant)).toEqual(['one\n', 'one\n', all, all, '', null, 'one\n'])
  expect([await countTexts(tenant), first.result.texts, first.notices]).toEqual([3, 3, []])
  const again = await sync(clone, tenant)
  expect(again.batches.flatMap(({ texts = [] }) => texts)).toEqual([])
  expect(again.result).toMatchObject({ texts: 0, known: 7 })
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
    expect((await sync(clone, tenant)).result.texts).toBe(0)
    expect(await textsOf(prompts.greeting, tenant)).toEqual(['one', 'text 1'])
  },
)

test('a rebased pull request that removes the file after a change has no text', async () => {
  const { tenant, prompts, clone, deliver } = await createStoring()
  clone.change('Begin', greeting, { text: 'one' })
  const changed = clone.change('Change', greeting, { text: 'two' })
  clone.git('rm', '--quiet', greeting)
  const removed = clone.commit('Remove')
  await deliver([
    { id: changed, modified: [greeting] },
    { id: removed, removed: [greeting] },
  ])
  await sync(clone, tenant)
  expect(await textsOf(prompts.greeting, tenant)).toEqual(['one', null])
})

// The embedded engine records a batch in steps of 50 entries.
test('a rebased pull request keeps the text of its last change across the steps of a batch', async () => {
  const { tenant, prompts, clone, deliver } = await createStoring()
  for (let index = 0; index < 49; index += 1) clone.change('Begin', other, { text: `text ${index}` })
  const commits = ['two', 'three', 'four'].map((text, index) => {
    const path = index === 2 ? 'README.md' : greeting
    return { id: clone.change(text, path, { text }), modified: [path] }
  })
  await deliver(commits)
  for (const _ of [1, 2]) {
    await sync(clone, tenant)
    expect(await textsOf(prompts.greeting, tenant)).toEqual(['three'])
    await pruneTexts(service.services.db)
  }
})

test('what is not UTF-8, too large or binary is left out, and said once for each prompt', async () => {
  const { tenant, prompts, clone } = await createStoring()
  for (const round of ['1', '2']) {
    clone.write(greeting, `a\0${round}`)
    clone.write(farewell, 'x'.repeat(64 * 1024) + round)
    await Bun.write(`${clone.folder}/${other}`, new Uint8Array([0xff, 0xfe, round.charCodeAt(0)]))
    clone.git('add', other)
    clone.commit(`Round ${round}`)
  }
  clone.change('Smaller', farewell, { text: 'x'.repeat(64 * 1024) })
  const { notices } = await sync(clone, tenant)
  const problems = new Map(
    notices.map((notice) => [notice.path, 'problem' in notice && notice.problem?.split(' at ')[0]]),
  )
  expect(notices).toHaveLength(3)
  expect(Object.fromEntries(problems)).toEqual({
    [greeting]: 'is binary',
    [farewell]: 'is larger than 64 KiB',
    [other]: 'is not UTF-8',
  })
  expect(await textsOf(prompts.farewell, tenant)).toEqual([null, null, 'x'.repeat(64 * 1024)])
  expect(await textsOf(prompts.greeting, tenant)).toEqual([null, null])
})

const [one, two] = ['Hello.\nBye.\n', 'Hello, {name}.\nBye.\n']

/** A tenant with three changes, the last without a text; and a pull request that was opened before the second. */
async function createStory() {
  const tenant = await service.createTenant()
  await storeText(tenant)
  const { key, prompt } = tenant
  const of = (commit_sha: string, minute: number, text?: string) => ({
    ...{ prompt_id: prompt, ...entry({ commit_sha, created_at: `2026-01-01T00:0${minute}:00Z` }) },
    ...(text !== undefined && { text_hash: hashText(text) }),
  })
  const entries = [of('aaaaaaa1', 1, one), of('bbbbbbb2', 3, two), of('ccccccc3', 5)]
  const tried = await service.post('/history/batch', key, { entries, texts: [one], dry_run: true })
  const sent = await service.post('/history/batch', key, { entries, texts: [one, two, 'unused'] })
  const opened = {
    action: 'pr_opened',
    pr_number: 1,
    pr_url: 'https://example.com/1',
    created_at: '2026-01-01T00:02:00Z',
  }
  await service.post(`/prompts/${prompt}/history`, key, entry({ ...opened, commit_sha: 'ddddddd4' }))
  const { body } = await service.getHistory(prompt, key)
  const [third, second, pull, first] = body.data.map(({ id }: Entry) => id)
  const triedAgain = await service.post('/history/batch', key, { entries, dry_run: true })
  return { tenant, tried, sent, triedAgain, entries, ids: { first, pull, second, third } }
}

test('the difference is to the change before, to a base, or to nothing before the first one', async () => {
  const { tenant, tried, sent, triedAgain, ids } = await createStory()
  const { prompt, key } = tenant
  const added = ['added', 'added', 'added']
  expect(tried.body.data).toEqual({ outcomes: added, missing_texts: [hashText(two)] })
  expect(sent.body.data).toEqual({ outcomes: added, missing_texts: [] })
  expect(triedAgain.body.data).toEqual({ outcomes: ['known', 'known', 'known'], missing_texts: [] })
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

test('without the scope to read the history, a difference says only which commits it compares', async () => {
  const { tenant, ids } = await createStory()
  const { key } = await service.createKey(tenant, ['prompts:read'])
  const { data } = (await diff(tenant.prompt, ids.second, key)).body
  expect(data).toEqual({
    entry: { id: ids.second, commit_sha: 'bbbbbbb2', created_at: '2026-01-01T00:03:00.000Z' },
    base: { id: ids.first, commit_sha: 'aaaaaaa1', created_at: '2026-01-01T00:01:00.000Z' },
    ...{ before: one, after: two, diff: expect.any(String) },
  })
  expect((await diff(tenant.prompt, ids.first, key)).body.data.base).toBeNull()
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

test('organisations share no text, a missing one is named, and an odd one is rejected', async () => {
  const { tenant, entries, ids } = await createStory()
  const stranger = await service.createTenant()
  await storeText(stranger)
  expect((await diff(tenant.prompt, ids.second, stranger.key)).status).toBe(404)
  const send = (texts?: string[]) => {
    const own = entries.map((item) => ({ ...item, prompt_id: stranger.prompt }))
    return service.post('/history/batch', stranger.key, { entries: own, ...(texts && { texts }) })
  }
  expect((await send()).body.data.missing_texts.toSorted()).toEqual([hashText(one), hashText(two)].toSorted())
  expect((await send([one])).body.data.missing_texts).toEqual([hashText(two)])
  expect((await send([two])).body.data.missing_texts).toEqual([])
  for (const text of ['a\0b', '\ud800', 'é'.repeat(32 * 1024 + 1)]) {
    expect(await send([one, text])).toMatchObject(invalid('/texts/1'))
  }
})

test('a text that comes with a short hash belongs to the entry with the whole one', async () => {
  const tenant = await service.createTenant()
  const { key, prompt } = tenant
  await storeText(tenant)
  const hashes = ['1', '2'].map((last) => last.padStart(40, 'c0ffee'))
  await service.addHistory(prompt, [entry({ commit_sha: hashes[0] })])
  const send = (commit_sha: string | undefined, text: string) => {
    const entries = [{ prompt_id: prompt, ...entry({ commit_sha }), text_hash: hashText(text) }]
    return service.post('/history/batch', key, { entries, texts: [text] })
  }
  expect((await send(hashes[0]?.slice(0, 9), one)).body.data).toEqual({ outcomes: ['known'], missing_texts: [] })
  expect(await textsOf(prompt, tenant)).toEqual([one])
  // Now the short hash fits two commits, and is a third one.
  await send(hashes[1], two)
  await send(hashes[0]?.slice(0, 9), 'three')
  expect(await textsOf(prompt, tenant)).toEqual([one, two, 'three'])
})

/** A story whose first text is stored, and no entry has it; and the entry that gets it. */
async function createUnused() {
  const { db } = service.services
  const { tenant } = await createStory()
  const { organisationId, id } = await requirePrompt(db.sql, tenant.prompt)
  await db.sql`update history_entries set text_hash = null where prompt_id = ${id}`
  return {
    db,
    tenant,
    organisationId,
    refs: [{ prompt_id: id, branch_name: 'main', commit_sha: 'aaaaaaa1', text_hash: hashText(one) }],
  }
}

// The embedded engine runs one transaction at a time.
if (engine === 'postgres') {
  test.each([
    ['sent with it', new Map([[hashText(one), one]])],
    ['known already', new Map()],
  ])('an unused text is not deleted while an entry gets it: %s', async (_, texts) => {
    const { db, tenant, organisationId, refs } = await createUnused()
    await db.transaction(async (sql) => {
      expect(await recordTexts(sql, organisationId, refs, texts)).toEqual([])
      await pruneTexts(db)
    })
    expect(await textsOf(tenant.prompt, tenant)).toEqual([one, null, null, null])
  })

  test('no text is left of a batch that began before the setting was turned off', async () => {
    const { db, tenant, organisationId, refs } = await createUnused()
    const { erased } = await db.transaction(async (sql) => {
      await recordTexts(sql, organisationId, refs, new Map([[hashText(one), one]]))
      const erased = storeText(tenant, false).then(() => eraseTexts(db, organisationId))
      // As long as it does not wait, it has ended by then.
      await Promise.race([erased, Bun.sleep(200)])
      return { erased }
    })
    expect(await erased).toBe(1)
    expect(await countTexts(tenant)).toBe(0)
  })

  test('an unused text is deleted before an entry gets it, or not at all', async () => {
    const { db, tenant, organisationId, refs } = await createUnused()
    for (let round = 0; round < 80; round += 1) {
      // Among many others, so that some time passes until its turn.
      await db.sql`
        insert into prompt_texts (organisation_id, hash, text)
        select ${organisationId}::bigint, sha256(n::text::bytea), n::text from generate_series(1, 500) n
        union all
        select ${organisationId}, decode(${hashText(one)}, 'hex'), ${one}
        on conflict do nothing`
      await db.sql`update history_entries set text_hash = null where organisation_id = ${organisationId}`
      const link = async () => {
        const startsAt = performance.now() + Math.random() * 4
        while (performance.now() < startsAt) await nextTurn()
        return db.transaction((sql) => recordTexts(sql, organisationId, refs, new Map()))
      }
      const [missing] = await Promise.all([link(), pruneTexts(db)])
      const [text] = await textsOf(tenant.prompt, tenant)
      expect(missing).toEqual(text === one ? [] : [hashText(one)])
    }
  })

  test('a text that is being deleted counts as missing', async () => {
    const { db, organisationId, refs } = await createUnused()
    const { missing } = await db.transaction(async (sql) => {
      await sql`delete from prompt_texts where organisation_id = ${organisationId}`
      const missing = db.transaction((other) => recordTexts(other, organisationId, refs, new Map()))
      // As long as it does not wait, it has an answer by then.
      await Promise.race([missing, Bun.sleep(200)])
      return { missing }
    })
    expect(await missing).toEqual([hashText(one)])
  })
}

test('texts are erased for a prompt, with the setting, and once nothing has them', async () => {
  const { db, clock } = service.services
  const { tenant, entries } = await createStory()
  const prompt = await requirePrompt(db.sql, tenant.prompt)
  const { organisationId, id } = prompt
  expect(await countTexts(tenant)).toBe(2)
  expect(await forgetTexts(db, clock, prompt)).toBe(2)
  expect([await countTexts(tenant), await textsOf(tenant.prompt, tenant)]).toEqual([0, [null, null, null, null]])
  const send = () => service.post('/history/batch', tenant.key, { entries, texts: [one, two] })
  expect((await send()).body.data.missing_texts).toEqual([])

  await db.sql`delete from history_entries where prompt_id = ${id} and commit_sha = 'aaaaaaa1'`
  await pruneTexts(db)
  expect(await countTexts(tenant)).toBe(1)

  await storeText(tenant, false)
  expect((await send()).status).toBe(422)
  await pruneTexts(db)
  expect(await countTexts(tenant)).toBe(0)
  expect(await eraseTexts(db, organisationId)).toBe(1)
})
