// The scope history:write alone: it adds to what GitHub signed, does not rewrite it, and the audit log says what it replaced.
import { expect, test } from 'bun:test'
import { setStoreText } from '../../src/orgs/manage.ts'
import { change, createHook, type Entry } from '../github/hook.ts'
import { push, sha } from '../github/payloads.ts'
import { useService } from '../use.ts'

const service = useService()
const mallory = { name: 'Mallory', email: 'mallory@example.com' }
const minute = (number: number) => `2026-11-14T12:0${number}:00Z`

/** GitHub has signed a commit and its title. */
async function start() {
  const hook = await createHook(service)
  const { key } = await service.createKey(hook.tenant, ['history:write'])
  const { key: auditor } = await service.createKey(hook.tenant, ['keys:read', 'prompts:read'])
  await hook.send('push', push({ after: sha('signed'), commits: [{ ...change, message: 'Signed' }], at: minute(1) }))
  const readEntries = async (): Promise<Entry[]> =>
    (await service.getHistory(hook.prompts.greeting, hook.tenant.key, '?include=title')).body.data
  return {
    hook,
    auditor,
    readEntries,
    async send(more: object, batch: object = {}) {
      const entry = { prompt_id: hook.prompts.greeting, action: 'deployed', user: mallory, branch_name: 'main' }
      const entries = [{ ...entry, created_at: minute(2), ...more }]
      return (await service.post('/history/batch', key, { entries, ...batch })).body.data
    },
    async readAudit(): Promise<Entry[]> {
      const { body } = await service.get('/audit', auditor)
      return body.data.filter(({ action }: Entry) => action.startsWith('history.'))
    },
  }
}

test('a batch changes neither the author nor the title nor the time of a signed entry, nor a stored text', async () => {
  const { hook, auditor, send, readEntries, readAudit } = await start()
  await setStoreText(service.services.db, service.services.clock, hook.tenant.org, true)
  const before = await readEntries()
  const commit_sha = sha('signed')
  expect((await send({ commit_sha, title: 'Forged', text: 'true' })).outcomes).toEqual(['known'])
  expect((await send({ commit_sha, title: 'Forged', text: 'forged' }, { with_texts: true })).without_text).toEqual([])
  expect(await readEntries()).toEqual(before)
  const [{ id }] = before as [Entry]
  const diff = await service.get(`/prompts/${hook.prompts.greeting}/history/${id}/diff`, auditor)
  expect(diff.body.data.after).toBe('true')
  expect(await readAudit()).toEqual([])
})

test('a batch does not set the live branch', async () => {
  const { hook, auditor, send } = await start()
  const prompt = `/prompts/${hook.prompts.farewell}`
  await send({ prompt_id: hook.prompts.farewell, commit_sha: sha('other') }, { live_branch: 'elsewhere' })
  expect((await service.get(prompt, auditor)).body.data.live_branch).toBeNull()
})

test('entries that a merge of a batch replaces or corrects are in the audit log as they were', async () => {
  const { hook, send, readEntries, readAudit } = await start()
  await hook.send('push', push({ after: sha('second'), commits: [change], at: minute(3) }))
  const [second, signed] = (await readEntries()) as [Entry, Entry]
  const pull = { action: 'pr_merged', pr_number: 7, pr_url: 'https://github.com/acme/prompts/pull/7' }
  await send({ ...pull, commit_sha: sha('merge'), covers: [sha('signed'), sha('second')] })
  const [merge] = (await readEntries()) as [Entry]
  expect(merge.commit_sha).toBe(sha('merge'))
  const subject = hook.prompts.greeting
  expect(await readAudit()).toMatchObject([
    { action: 'history.removed', subject, details: { entry: signed } },
    { action: 'history.changed', subject, details: { entry: second, changed_to: merge } },
  ])

  // A later mailmap corrects the author of a commit that only git reported.
  await send({ commit_sha: sha('unsigned') })
  await send({ commit_sha: sha('unsigned'), user: { ...mallory, name: 'Mal' } })
  const changed_to = { commit_sha: sha('unsigned'), user: { name: 'Mal' } }
  expect((await readAudit())[0]).toMatchObject({ details: { entry: { user: mallory }, changed_to } })
})
