import { beforeAll, expect, spyOn, test } from 'bun:test'
import { scopes } from '../../src/lib/scopes.ts'
import { createHook, type Hook } from '../github/hook.ts'
import { push, sha } from '../github/payloads.ts'
import { engine } from '../harness.ts'
import { eventually } from '../program.ts'
import { entry } from '../service.ts'
import { useService } from '../use.ts'

/** Nearly half of a request's time. A change that was then given as much time as a request has would end after it. */
const lookUpMs = 2_000

const isPostgres = engine === 'postgres'
const service = useService()
let hook: Hook

beforeAll(async () => {
  hook = await createHook(service)
})

/**
 * Holds a lock on tables until it is released; on the embedded engine that is a hold on everything. There, statements go
 * on after the release, but no other transaction begins before the end.
 */
function hold(lock: string) {
  const held = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  const transaction = service.services.db.transaction(
    async (sql) => {
      await sql.dynamic(`lock table ${lock} mode`)
      held.resolve()
      await released.promise
      if (isPostgres) return
      await sql.dynamic('commit')
      await ended.promise
    },
    { deadline: Number.POSITIVE_INFINITY },
  )
  const end = () => {
    released.resolve()
    ended.resolve()
    return transaction
  }
  return { held: held.promise, release: released.resolve, end }
}

const countRows = () =>
  service.services.db.sql`
    select (select count(*) from audit_log) as changes,
      (select count(*) from github_events) as events, (select count(*) from history_entries) as entries,
      (select count(*) from signals) as signals, (select sum(used) from signal_usage) as used`

test('no change is made after its caller got an error, and the same request makes it later', async () => {
  const { db } = service.services
  const { prompts, tenant } = hook
  const makeKey = (name: string) => service.createKey(tenant, [...scopes], { name })
  const changed = await makeKey('changed')
  const rotated = await makeKey('rotated')
  const revoked = await makeKey('revoked')
  const signal = (await service.postSignal(prompts.other, tenant.key)).body.data
  // This key is used for the first time by the requests below, and so has to be looked up.
  const { key } = await makeKey('administrator')
  const change = (method: string, path: string, json?: object) => async () =>
    (await service.call(method, `/api/v1${path}`, { key, ...(json ? { json } : {}) })).status
  const pushed = push({ after: sha('late'), commits: [{ id: sha('late'), modified: ['prompts/greeting.md'] }] })
  /** Each change, and its status when nothing is in its way. */
  const requests: [string, () => Promise<number>, number][] = [
    ['DELETE key', change('DELETE', `/keys/${revoked.id}`), 200],
    ['POST key', change('POST', '/keys', { name: 'made' }), 201],
    ['PATCH key', change('PATCH', `/keys/${changed.id}`, { name: 'renamed' }), 200],
    ['POST rotation', change('POST', `/keys/${rotated.id}/rotate`, {}), 201],
    ['POST prompt', change('POST', '/prompts', { name: 'made' }), 201],
    ['PATCH prompt', change('PATCH', `/prompts/${prompts.farewell}`, { repository: null, path: null }), 200],
    ['DELETE signal', change('DELETE', `/prompts/${prompts.other}/signals/${signal.id}`), 200],
    ['POST signal', change('POST', `/prompts/${prompts.other}/signals`, { value: 'positive' }), 201],
    [
      'POST signals',
      change('POST', `/prompts/${prompts.other}/signals/batch`, { signals: [{ value: 'negative' }] }),
      200,
    ],
    ['POST entry', change('POST', `/prompts/${prompts.other}/history`, entry()), 201],
    ['POST entries', change('POST', '/history/batch', { entries: [{ ...entry(), prompt_id: prompts.farewell }] }), 200],
    ['POST delivery', async () => (await hook.deliver('push', pushed)).status, 200],
    // This is last, because the secret that deliveries are signed with is then another.
    ['PUT webhook', change('PUT', '/webhooks/github'), 200],
  ]

  const before = await countRows()
  const transactions = spyOn(db, 'transaction')
  const lookUps = hold('api_keys, github_webhooks in access exclusive')
  await lookUps.held
  const changes = isPostgres ? hold('audit_log, signals, history_entries, github_events in share') : undefined
  await changes?.held
  const sentAt = performance.now()
  const answers = requests.map(async ([name, request]) => [name, await request()])
  await eventually(() => performance.now() - sentAt > lookUpMs, true)
  // The embedded engine runs statements in the order in which they come: this one after the look-ups, before the changes.
  // On a busy machine it gets no answer in time.
  const slow = isPostgres ? undefined : db.sql.dynamic('select pg_sleep(4)').catch(() => {})
  lookUps.release()
  expect(await Promise.all(answers)).toEqual(requests.map(([name]) => [name, 503]))

  await Promise.all([lookUps.end(), changes?.end()])
  await slow
  await eventually(() => db.load().pending, 0)
  await Promise.allSettled(transactions.mock.results.map(({ value }) => value))
  transactions.mockRestore()
  expect(await countRows()).toEqual(before)

  for (const [name, request, status] of requests) expect([name, await request()]).toEqual([name, status])
})
