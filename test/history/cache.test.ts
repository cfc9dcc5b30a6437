import { expect, mock, test } from 'bun:test'
import type { Db } from '../../src/db/client.ts'
import { createHistoryReader } from '../../src/history/read.ts'
import { parseHistoryQuery } from '../../src/history/schema_params.ts'
import { requirePrompt } from '../../src/prompts/find.ts'
import { entry } from '../service.ts'
import { useNewTenant, useService } from '../use.ts'

const service = useService()
const tenant = useNewTenant(service)

test('a page that counts its matches needs a permit, any other page none', async () => {
  const { db } = service.services
  const { organisationId } = await requirePrompt(db.sql, tenant.prompt)
  const heavyRead = mock(db.heavyRead)
  const reader = createHistoryReader({ ...db, heavyRead } as Db)
  for (const search of ['?branch=main', '?action=deployed', '', '?since=2026-01-01']) {
    await reader.readPage(await reader.findHistory(organisationId, tenant.prompt), parseHistoryQuery(search))
  }
  expect(heavyRead).toHaveBeenCalledTimes(2)
})

test('queries that mean the same share a cached page, however they are written', async () => {
  const { db } = service.services
  const { organisationId } = await requirePrompt(db.sql, tenant.prompt)
  const sources: string[] = []
  const reader = createHistoryReader(db, { observer: { read: (source) => sources.push(source), cached: () => {} } })
  for (const searches of [
    ['', '?x=1', '?page=1', '?page=001&limit=25', '?limit=25&page=1', '?page=0', '?limit=many', '?&&', '?LIMIT=3'],
    ['?limit=100', '?limit=101', '?limit=99999999999999999999'],
    ['?action=deployed,pr_merged', '?action=pr_merged&action=deployed', '?x&action=pr_merged,deployed,deployed'],
    ['?since=2026-01-01', '?since=2026-01-01T00:00:00Z', '?since=2026-01-01T01:00:00%2B01:00'],
    ['?until=2026-01-01'],
    ['?branch=main', '?branch=%6dain'],
    ['?branch=Main'],
    ['?include=title', '?page=1&limit=25&include=title'],
  ]) {
    for (const [index, search] of searches.entries()) {
      await reader.readPage(await reader.findHistory(organisationId, tenant.prompt), parseHistoryQuery(search))
      expect([search, sources.pop()]).toEqual([search, index === 0 ? 'database' : 'cache'])
    }
  }
})

test('neither tag nor page of a change that a failover or a restore lost is taken for the change after it', async () => {
  const { sql } = service.services.db
  const read = (tag = '') => service.get(`/prompts/${tenant.prompt}/history`, tenant.key, { 'if-none-match': tag })
  await service.addHistory(tenant.prompt, [entry({ commit_sha: 'A' })])
  const kept = (await read()).headers.get('etag') as string
  await service.addHistory(tenant.prompt, [entry({ commit_sha: 'B' })])
  const lost = (await read()).headers.get('etag') as string
  // What a backup from before B has.
  await sql`
    with p as (
      update prompts set history_version = ${kept.slice(1, -1)}::text::uuid, history_count = 1
      where public_id = ${tenant.prompt}
      returning id
    )
    delete from history_entries h using p where h.prompt_id = p.id and h.commit_sha = 'B'`
  expect((await read(kept)).status).toBe(304)
  await service.addHistory(tenant.prompt, [entry({ commit_sha: 'C' })])
  const { status, body } = await read(`${kept}, ${lost}`)
  expect(status).toBe(200)
  expect(body.data.map((shown: { commit_sha: string }) => shown.commit_sha)).toEqual(['C', 'A'])
})
