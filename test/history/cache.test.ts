// Which pages of history come from the cache, and that none of them is stale.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Readable } from 'node:stream'
import { createApp } from '../../src/app.ts'
import { restoreBackup } from '../../src/backup/restore.ts'
import { writeBackup } from '../../src/backup/write.ts'
import { readConfig } from '../../src/config.ts'
import { migrate } from '../../src/db/migrations.ts'
import { openAny } from '../../src/db/open.ts'
import { createServices } from '../../src/deps.ts'
import { parseHistoryQuery } from '../../src/history/query.ts'
import { createHistoryReader } from '../../src/history/read.ts'
import { recordEntry } from '../../src/history/record.ts'
import { createKey } from '../../src/keys/manage.ts'
import { createOrganisation } from '../../src/orgs/manage.ts'
import { migrations } from '../../src/platform.ts'
import { requirePrompt } from '../../src/prompts/find.ts'
import { createPrompt } from '../../src/prompts/manage.ts'
import { createEmptyDatabase } from '../harness.ts'
import { entry, startService, type TestService } from '../service.ts'

let service: TestService

beforeAll(async () => {
  service = await startService()
})

afterAll(() => service.close())

test('queries that mean the same share a cached page, however they are written', async () => {
  const { db } = service.services
  const { prompt } = await service.createTenant()
  await service.addHistory(prompt, [entry()])
  const { organisationId } = await requirePrompt(db.sql, prompt)
  const sources: string[] = []
  const reader = createHistoryReader(db, { observer: { read: (source) => sources.push(source), cached: () => {} } })
  const read = async (search: string) => {
    await reader.readPage(await reader.findHistory(organisationId, prompt), parseHistoryQuery(search))
    return sources.pop()
  }
  for (const searches of [
    [
      '',
      '?x=1',
      '?x=2',
      '?page=1',
      '?page=001&limit=25',
      '?limit=25&page=1',
      '?page=0',
      '?limit=many',
      '?&&',
      '?LIMIT=3',
    ],
    ['?limit=100', '?limit=101', '?limit=99999999999999999999'],
    ['?action=deployed,pr_merged', '?action=pr_merged&action=deployed', '?x&action=pr_merged,deployed,deployed'],
    ['?since=2026-01-01', '?since=2026-01-01T00:00:00Z', '?since=2026-01-01T01:00:00%2B01:00'],
    ['?until=2026-01-01'],
    ['?branch=main', '?branch=%6dain'],
    ['?branch=Main'],
  ]) {
    const [first, ...others] = searches as [string, ...string[]]
    expect([first, await read(first)]).toEqual([first, 'database'])
    for (const search of others) expect([search, await read(search)]).toEqual([search, 'cache'])
  }
})

test('a cached page of another organisation cannot be read', async () => {
  const [own, other] = [await service.createTenant(), await service.createTenant()]
  expect((await service.getHistory(own.prompt, own.key)).status).toBe(200)
  expect((await service.getHistory(own.prompt, other.key)).status).toBe(404)
})

/** A service on a database of its own that has no deadlines, as operators' commands have none. */
async function openOther() {
  const database = await createEmptyDatabase()
  const options = { queryTimeoutMs: 0, maxConnections: 2, whenInUse: 'fail' as const }
  const db = await openAny(readConfig({}, database.settings), options)
  const { clock, log } = service.services
  const services = createServices({ db, clock, log })
  const app = createApp(services)
  const read = async (prompt: string, key: string, tag = '') => {
    const headers = { authorization: `Bearer ${key}`, 'if-none-match': tag }
    const answer = await app.fetch(new Request(`http://localhost/api/v1/prompts/${prompt}/history`, { headers }))
    const { data = [] } = answer.status === 200 ? ((await answer.json()) as { data: { commit_sha: string }[] }) : {}
    return { status: answer.status, tag: answer.headers.get('etag') ?? '', commits: data.map((one) => one.commit_sha) }
  }
  const record = async (prompt: string, commit_sha: string) =>
    recordEntry(db, clock, await requirePrompt(db.sql, prompt), entry({ commit_sha }))
  const close = async () => {
    await services.close()
    await database.close()
  }
  return { db, clock, read, record, close }
}

test('after a restore, the tag of a change that was lost does not match the change that came instead', async () => {
  const [source, target] = [await openOther(), await openOther()]
  const { db, clock } = source
  await migrate(db, migrations)
  const { id: org } = await createOrganisation(db, clock, { name: 'Test', plan: 'free', monthlyLimit: null })
  const { key } = await createKey(db, clock, { org, name: 'test', expiresAt: null })
  const { id: prompt } = await createPrompt(db, clock, { org, name: 'test', id: null })
  await source.record(prompt, 'A')
  const withA = await source.read(prompt, key)
  let backup = ''
  await writeBackup(db, clock, 'test', async (more) => {
    backup += more
  })
  await source.record(prompt, 'B')
  const withB = await source.read(prompt, key)
  expect(withB.commits).toEqual(['B', 'A'])

  const lines = Readable.from(backup.split('\n').slice(0, -1))
  await restoreBackup(target.db, migrations, lines)
  // The entries from the time of the backup are unchanged.
  expect(await target.read(prompt, key, withA.tag)).toMatchObject({ status: 304 })
  await target.record(prompt, 'C')
  expect(await target.read(prompt, key, `${withA.tag}, ${withB.tag}`)).toMatchObject({
    status: 200,
    commits: ['C', 'A'],
  })
  await Promise.all([source.close(), target.close()])
})
