// Uses every feature, so that every table has rows: what a release keeps for the later ones to read.
import { operator } from '../../src/audit/record.ts'
import { setWebhook } from '../../src/github/settings.ts'
import { presets } from '../../src/lib/scopes.ts'
import {
  createOrganisation,
  requireOrganisation,
  setRetention,
  setStoreText,
  setSuspended,
} from '../../src/orgs/manage.ts'
import { erasePrompt } from '../../src/prompts/erase.ts'
import { requirePrompt } from '../../src/prompts/find.ts'
import { createPastRecorder } from '../../src/signals/import.ts'
import { announceThresholds, createVerdictCheck } from '../../src/webhooks/announce.ts'
import { headersOf } from '../github/hook.ts'
import { merged, pullRequest, push, sha } from '../github/payloads.ts'
import { onDays, signals } from '../impact/history.ts'
import { entry, type TestService } from '../service.ts'

/** What tests send again, and look for in answers. */
export type Everything = { key: string; prompts: { greeting: string; farewell: string; long: string } }

/** When the answers were given: they depend on the month and the day. */
export const frozenAt = '2026-11-15T12:00:00.000Z'
const [earlierAt, page] = ['2026-11-08T00:30:00.000Z', 'https://shop.example.com']
const repository = 'acme/prompts'

export async function useEverything(service: TestService, receiver: string): Promise<Everything> {
  const { services, clock } = service
  const { db, rollup } = services
  clock.set(earlierAt)
  const own = await createOwner(service, 'Acme')
  await setStoreText(db, clock, own.org, true)
  const { key } = own

  /** A request that must succeed. */
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  async function send(method: 'post' | 'put' | 'patch', path: string, body: object = {}, headers = {}): Promise<any> {
    const answer = await service[method](path, key, body, headers)
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`)
    return answer.body.data
  }
  const createPrompt = async (name: string): Promise<string> =>
    (await send('post', '/prompts', { id: `pmt_${name}`, name, repository, path: `prompts/${name}.md` })).id
  const [greeting, farewell, long, summary] = await Promise.all(
    ['greeting', 'farewell', 'long', 'summary'].map(createPrompt),
  )
  if (!greeting || !farewell || !long || !summary) throw new Error('The prompts were not created')
  const erased = await requirePrompt(db.sql, await createPrompt('erased'))
  await erasePrompt(db, clock, erased)

  const endpoint = await send('post', '/webhooks/endpoints', { url: receiver })
  const slack = { url: receiver, kind: 'slack', events: ['impact.decided'], prompts: [farewell] }
  const { id: disabled } = await send('post', '/webhooks/endpoints', slack)
  await send('post', '/webhooks/endpoints', slack)
  await send('patch', `/webhooks/endpoints/${disabled}`, { enabled: false })
  await send('post', `/webhooks/endpoints/${endpoint.id}/rotate`)
  await send('post', `/webhooks/endpoints/${endpoint.id}/test`)

  const history = (prompt: string, entries: object[]) =>
    send('post', '/history/batch', { entries: entries.map((one) => ({ prompt_id: prompt, ...one })) })
  const many = Array.from({ length: 600 }, (_, index) =>
    entry({
      ...{ action: 'pr_opened', pr_number: index + 1, pr_url: `https://example.com/${index + 1}` },
      ...{ commit_sha: sha(`long ${index}`), created_at: new Date(Date.UTC(2026, 0, 1, 0, index)).toISOString() },
    }),
  )
  for (const start of [0, 300]) await history(long, many.slice(start, start + 300))
  const [before, after] = [sha('before'), sha('after')]
  const live = (commit: string, at: string, more = {}) => entry({ commit_sha: commit, created_at: at, ...more })
  const pull = { pr_number: 8, pr_url: 'https://example.com/8', title: 'Close with an offer' }
  await history(farewell, [
    live(before, '2026-09-01T09:00:00Z', { text: 'Bye.\n' }),
    live(sha('wrong'), '2026-09-02T09:00:00Z', { branch_name: 'wrong' }),
    live(sha('mistaken'), '2026-09-03T09:00:00Z', { ...pull, action: 'pr_merged' }),
  ])
  await send('post', '/history/remove', { prompt_id: farewell, branch: 'wrong' })
  const { body: listed } = await service.getHistory(farewell, key)
  await service.delete(`/prompts/${farewell}/history/${listed.data[0].id}`, key)
  await send('post', `/prompts/${summary}/history`, live(before, '2026-09-01T09:00:00Z'))

  const check = createVerdictCheck({ db, clock, rollup }, { isStopping: () => false, onFailure: raise })
  const past = async (prompt: string, days: number, ...sent: Parameters<typeof signals>) => {
    const record = createPastRecorder(db, clock.now(), await requirePrompt(db.sql, prompt))
    const rows = onDays(days, signals(...sent)).map(({ value, commit, at }) => ({
      value,
      metadata: commit === undefined ? null : JSON.stringify({ commit_sha: commit, model: 'gpt-5' }),
      createdAt: new Date(at),
    }))
    for (let start = 0; start < rows.length; start += 500) await record(rows.slice(start, start + 500))
  }
  await past(summary, 35, 1_050, 350, { at: '2026-10-04T10:00:00Z' })
  await past(farewell, 7, 80, 120, { commit: before, at: '2026-11-01T10:00:00Z' })
  await check()
  clock.set(frozenAt)
  await history(farewell, [
    { ...live(after, '2026-11-14T09:00:00Z', pull), action: 'pr_merged', covers: [sha('covered')], text: 'Bye!\n' },
  ])
  await past(summary, 7, 56, 224, { at: '2026-11-08T10:00:00Z' })
  await past(farewell, 1, 180, 20, { commit: after, at: '2026-11-14T10:00:00Z' })

  const { secret, path } = await setWebhook(db, clock, await requireOrganisation(db, own.org), operator)
  const change = { modified: ['prompts/greeting.md'] }
  const toMain = [{ ...change, id: sha('warmer'), distinct: false }, {}]
  for (const [event, payload] of [
    ['push', push({ branch: 'warmer', after: sha('warmer'), commits: [change], created: true })],
    ['pull_request', pullRequest('opened')],
    ['pull_request', merged()],
    ['push', push({ after: sha('merge'), commits: toMain, at: '2026-11-14T13:00:00Z' })],
  ] as const) {
    const body = JSON.stringify(payload)
    const { status, text } = await service.call('POST', path, {
      body,
      headers: await headersOf(event, body, { secret }),
    })
    if (status !== 200) throw new Error(text)
  }

  const recorded = await send('post', `/prompts/${greeting}/signals`, signal('positive'), { 'idempotency-key': 'once' })
  await send('post', `/prompts/${greeting}/signals/batch`, { signals: [signal('positive'), signal('negative')] })
  await service.delete(`/prompts/${greeting}/signals/${recorded.id}`, key)
  await send('post', `/prompts/${greeting}/signals`, signal('negative'), { 'idempotency-key': 'twice' })
  for (const value of ['positive', 'negative']) {
    const vote = { ...signal(value), subject: 'answer 1' }
    await send('post', `/prompts/${greeting}/signals`, vote, { 'idempotency-key': `vote ${value}` })
  }
  await send('post', `/prompts/${greeting}/signals`, { ...signal('positive'), subject: 'answer 2' })
  await service.delete(`/prompts/${greeting}/signals?subject=answer%202`, key)
  const browser = await send('post', '/keys', {
    ...{ name: 'page', preset: 'browser', origins: [page], prompts: [greeting], monthly_limit: 100 },
  })
  await service.post(`/prompts/${greeting}/signals`, browser.key, signal('positive'), { origin: page })
  await send('post', `/keys/${browser.id}/rotate`)
  const rotated = await send('post', '/keys', { name: 'app', preset: 'app', expires_at: '2099-01-01T00:00:00Z' })
  await send('post', `/keys/${rotated.id}/rotate`)
  const revoked = await send('post', '/keys', { name: 'revoked' })
  await service.delete(`/keys/${revoked.id}`, key)
  await send('patch', `/prompts/${greeting}`, { name: 'Greeting', live_branch: 'main' })

  const suspended = await createOwner(service, 'Suspended')
  await setSuspended(db, clock, suspended.org, true)
  const small = await createOwner(service, 'Small', 5)
  await setRetention(db, clock, small.org, 36_500)
  await service.post('/webhooks/endpoints', small.key, { url: receiver })
  const { body } = await service.post('/prompts', small.key, { name: 'small' })
  for (let sent = 0; sent < 5; sent += 1) {
    await service.post(`/prompts/${body.data.id}/signals`, small.key, signal('positive'))
  }
  await check()
  await announceThresholds(db, clock)
  for (const prompt of [greeting, farewell, summary]) await rollup.catchUp(await requirePrompt(db.sql, prompt))
  return { key, prompts: { greeting, farewell, long } }
}

const signal = (value: string) => ({ value, metadata: { session: 'a81c', big: 9_007_199_254_740_991 } })

function raise(error: unknown): never {
  throw error
}

async function createOwner({ services: { db }, clock, createKey }: TestService, name: string, monthlyLimit?: number) {
  const made = await createOrganisation(db, clock, { name, plan: 'business', monthlyLimit: monthlyLimit ?? null })
  const { key } = await createKey({ org: made.id }, presets.admin)
  return { org: made.id, key }
}
