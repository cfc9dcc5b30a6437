// What counts as a change: entries of the live branch after which another commit was live.
import { expect, test } from 'bun:test'
import { invalid } from '../client.ts'
import { createHook, paths } from '../github/hook.ts'
import { merged, push } from '../github/payloads.ts'
import { entry } from '../service.ts'
import { useNewTenant, useService } from '../use.ts'
import { addSignals, deployed, merged as mergedEntry } from './history.ts'

const service = useService()
const tenant = useNewTenant(service)

type Impact = {
  change: { commit_sha: string }
  window: { from: string; until: string | null }
  signals: { total: number }
}

const at = (hour: number) => `2026-10-01T${String(hour).padStart(2, '0')}:00:00.000Z`

/** The commits of the changes with their hours and numbers of signals, newest first. */
async function readChanges(): Promise<string[]> {
  const { body } = await service.get(`/prompts/${tenant.prompt}/impact`, tenant.key)
  expect(body.pagination.total_count).toBe(body.data.length)
  const overview = await service.get('/impact', tenant.key)
  expect(overview.body.data[0].latest?.change).toEqual(body.data[0]?.change)
  const hour = (time: string | null) => (time === null ? '' : Number(time.slice(11, 13)))
  return body.data.map(({ change, window, signals }: Impact) => {
    return `${change.commit_sha} ${hour(window.from)}-${hour(window.until)}: ${signals.total}`
  })
}

const patch = async (json: object) => {
  const { key } = await service.createKey(tenant, ['prompts:write', 'prompts:read'])
  return service.call('PATCH', `/api/v1/prompts/${tenant.prompt}`, { key, json })
}

test('only entries of the live branch are changes; without one, those of every branch', async () => {
  const onTopic = { ...mergedEntry('b', at(11), 8), branch_name: 'topic' }
  await service.addHistory(tenant.prompt, [deployed('a', at(10)), onTopic, deployed('c', at(13))])
  await addSignals(service, tenant.prompt, [{ value: 'positive', commit: 'B', at: at(16) }])
  expect(await readChanges()).toEqual(['c 13-: 0', 'b 11-13: 1', 'a 10-11: 0'])
  const changed = await patch({ live_branch: 'main' })
  expect([changed.status, changed.body.data.live_branch]).toEqual([200, 'main'])
  expect(await readChanges()).toEqual(['c 13-: 1', 'a 10-13: 0'])
  await service.addHistory(tenant.prompt, [{ ...deployed('d', at(15)), branch_name: 'topic' }, deployed('e', at(12))])
  expect(await readChanges()).toEqual(['c 13-: 1', 'e 12-13: 0', 'a 10-12: 0'])
  await patch({ live_branch: 'topic' })
  expect(await readChanges()).toEqual(['d 15-: 0', 'b 11-15: 1'])
  await patch({ live_branch: null })
  expect(await readChanges()).toEqual(['d 15-: 0', 'c 13-15: 0', 'e 12-13: 0', 'b 11-12: 1', 'a 10-11: 0'])
  expect((await patch({ live_branch: '' })).status).toBe(422)
})

test('a commit that is live twice in a row is one change, and both entries stay', async () => {
  const whole = '45c48cce2e2d7fbdea1afc51c7c6ad26b0d94e11'
  await service.addHistory(tenant.prompt, [deployed('a', at(9)), mergedEntry(whole, at(10), 7)])
  await addSignals(service, tenant.prompt, [{ value: 'positive', at: at(11) }])
  expect(await readChanges()).toEqual([`${whole} 10-: 1`, 'a 9-10: 0'])
  await service.addHistory(tenant.prompt, [deployed(whole.slice(0, 7), at(12))])
  expect(await readChanges()).toEqual([`${whole} 10-: 1`, 'a 9-10: 0'])
  expect((await service.getHistory(tenant.prompt, tenant.key)).body.pagination.total_count).toBe(3)
  // Another commit between the two: a rollback.
  await service.addHistory(tenant.prompt, [deployed('x', at(11))])
  expect(await readChanges()).toEqual([`${whole} 12-: 0`, 'x 11-12: 1', `${whole} 10-11: 0`, 'a 9-10: 0'])
})

test('a removed entry leaves no trace but the audit log, and sync does not bring it back', async () => {
  const { key } = await service.createKey(tenant, ['history:delete', 'keys:read', 'history:write'])
  const sync = (commit_sha: string, created_at: string) =>
    service.post('/history/batch', key, {
      entries: [{ prompt_id: tenant.prompt, ...entry({ commit_sha, created_at }) }],
    })
  await sync('a', at(10))
  await service.addHistory(tenant.prompt, [deployed('wrong', at(11)), mergedEntry('a', at(12), 7)])
  await addSignals(service, tenant.prompt, [{ value: 'positive', at: at(13) }])
  const [, wrong, first] = (await service.getHistory(tenant.prompt, tenant.key)).body.data
  const remove = (id: unknown, using = key) =>
    service.call('DELETE', `/api/v1/prompts/${tenant.prompt}/history/${id}`, { key: using })
  expect((await remove(wrong.id, tenant.key)).body.error.scope).toBe('history:delete')
  const other = await service.createTenant()
  const foreign = await service.createKey(other, ['history:delete'])
  for (const [id, using] of [
    [wrong.id, foreign.key],
    [999_999_999, key],
    ['x', key],
  ]) {
    expect((await remove(id, using)).status).toBe(404)
  }
  expect((await remove(wrong.id)).body).toEqual({ data: { id: wrong.id } })
  expect((await remove(wrong.id)).status).toBe(404)
  expect(await readChanges()).toEqual(['a 10-: 1'])
  const audit = await service.get('/audit', key)
  expect(audit.body.data[0]).toMatchObject({
    action: 'history.removed',
    subject: tenant.prompt,
    details: { entry: wrong },
  })

  await remove(first.id)
  expect((await sync('a', at(10))).body.data.outcomes).toEqual(['known'])
  expect(await readChanges()).toEqual(['a 12-: 1'])
})

test('the entries of a branch are removed together, the others marked again, and a sync brings them back', async () => {
  const { key } = await service.createKey(tenant, ['history:delete', 'keys:read', 'history:write', 'prompts:write'])
  const other = await service.createPrompt(tenant, 'other')
  await service.call('PATCH', `/api/v1/prompts/${other}`, { key, json: { archived: true } })
  const of = (prompt_id: string, commit_sha: string, hour: number, branch_name: string) => {
    return { prompt_id, ...entry({ commit_sha, created_at: at(hour), branch_name }) }
  }
  const entries = [
    of(tenant.prompt, 'a', 10, 'main'),
    of(tenant.prompt, 'b', 11, 'warmer'),
    of(tenant.prompt, 'a', 12, 'release'),
    of(other, 'c', 10, 'warmer'),
  ]
  const sync = async () => (await service.post('/history/batch', key, { entries })).body.data.outcomes
  await sync()
  const opened = { action: 'pr_opened', pr_number: 7, pr_url: 'https://example.com/7', branch_name: 'warmer' }
  await service.addHistory(tenant.prompt, [entry({ ...opened, created_at: at(11) })])
  const remove = (body: object, using = key) => service.post('/history/remove', using, body)
  const foreign = await service.createKey(await service.createTenant(), ['history:delete'])
  expect((await remove({ branch: 'warmer' }, foreign.key)).body).toEqual({ data: { entries: 0 } })
  expect((await remove({ branch: 'warmer', prompt_id: other }, foreign.key)).status).toBe(404)
  expect(await remove({ prompt_id: other })).toMatchObject(invalid('/branch'))
  expect(await remove({ path: 'a.md' })).toMatchObject(invalid('/repository'))
  expect((await remove({ branch: 'warmer', dry_run: true })).body).toEqual({ data: { entries: 2 } })
  expect(await readChanges()).toEqual(['a 12-: 0', 'b 11-12: 0', 'a 10-11: 0'])
  expect((await remove({ branch: 'warmer' })).body).toEqual({ data: { entries: 2 } })
  expect(await readChanges()).toEqual(['a 10-: 0'])
  const { body } = await service.getHistory(tenant.prompt, tenant.key)
  expect(body.data.map(({ branch_name }: { branch_name: string }) => branch_name)).toEqual([
    'release',
    'warmer',
    'main',
  ])
  expect((await remove({ branch: 'warmer' })).body).toEqual({ data: { entries: 0 } })
  const removals = (await service.get('/audit', key)).body.data.filter(
    ({ action }: { action: string }) => action === 'history.removed',
  )
  expect(removals).toMatchObject([{ subject: tenant.org, details: { entries: 2, branch: 'warmer' } }])
  expect(await sync()).toEqual(['known', 'added', 'known', 'added'])
})

test('what sync and the webhook added for a file is removed together, and what clients recorded stays', async () => {
  const hook = await createHook(service, 'Acme/Prompts')
  const { prompts, tenant: owner } = hook
  const { key } = await service.createKey(owner, ['history:delete', 'prompts:write', 'history:write'])
  const sync = (commit_sha: string, hour: number) =>
    service.post('/history/batch', key, {
      entries: [{ prompt_id: prompts.greeting, ...entry({ commit_sha, created_at: at(hour) }) }],
    })
  await sync('wrong', 10)
  await service.addHistory(prompts.greeting, [deployed('given', at(11))])
  await hook.deliver('push', push({ commits: [{ id: 'c0ffee'.padEnd(40, '0'), modified: [paths.greeting] }] }))
  const link = { repository: 'acme/prompts', path: 'prompts/other.txt' }
  await service.call('PATCH', `/api/v1/prompts/${prompts.greeting}`, { key, json: link })
  await sync('right', 12)
  const remove = (more: object) => service.post('/history/remove', key, { prompt_id: prompts.greeting, ...more })
  expect((await remove({ ...link, repository: 'acme/other' })).body.data.entries).toBe(0)
  expect((await remove({ repository: 'Acme/Prompts', path: paths.greeting })).body.data.entries).toBe(2)
  const { body } = await service.getHistory(prompts.greeting, owner.key)
  expect(body.data.map(({ commit_sha }: { commit_sha: string }) => commit_sha)).toEqual(['right', 'given'])
})

test('the webhook makes the default branch live and says so in the audit log, unless there is a live branch', async () => {
  const hook = await createHook(service, 'Acme/Prompts')
  const branchOf = async () =>
    (await service.get(`/prompts/${hook.prompts.greeting}`, hook.tenant.key)).body.data.live_branch
  expect(await branchOf()).toBeNull()
  await hook.deliver('push', push({ commits: [{ modified: [paths.greeting] }] }))
  expect(await branchOf()).toBe('main')
  const { key } = await service.createKey(hook.tenant, ['keys:read'])
  expect((await service.get('/audit', key)).body.data[1]).toMatchObject({
    ...{ actor: 'github', action: 'prompt.updated', subject: hook.prompts.greeting, details: { live_branch: 'main' } },
  })
  await hook.deliver('pull_request', merged({ number: 9 }))
  expect(await branchOf()).toBe('main')
})
