import { beforeEach, expect, test } from 'bun:test'
import { type Scope, scopes } from '../../src/lib/scopes.ts'
import { invalid } from '../client.ts'
import type { Row } from '../program.ts'
import { useAdmin, useNewTenant, useService } from '../use.ts'
import { emit, setOutcome } from './emit.ts'

const service = useService()
const tenant = useNewTenant(service)
const admin = useAdmin(service, tenant, beforeEach)
const path = '/webhooks/endpoints'
const url = 'https://example.com/hook'
const slackPath = '/services/T00/B00/XXXXXXXX'
const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

const keyWith = async (...given: Scope[]) => (await service.createKey(tenant, given)).key
const sendEvent = () => emit(service, tenant.org)

async function create(json: object = { url }): Promise<Row> {
  const { status, body } = await service.post(path, admin.key, json)
  expect(status).toBe(201)
  return body.data
}

test('an endpoint is created, listed, shown, changed and removed, each recorded in the audit log', async () => {
  const { secret, ...made } = await create({ url, events: ['change.live', 'change.live'] })
  expect(secret).toMatch(/^whsec_/)
  expect(Buffer.from(secret.slice(6), 'base64')).toHaveLength(32)
  const enabled = { enabled: true, disabled_reason: null, disabled_at: null, failing_since_at: null }
  const id = expect.stringMatching(/^whe_[0-9A-Za-z]{16}$/)
  const given = { kind: 'webhook', url, events: ['change.live'], prompts: null }
  expect(made).toEqual({ id, ...given, ...enabled, old_secret_ends_at: null, created_at: time })
  const shown = await service.get(`${path}/${made.id}`, admin.key)
  const listed = await service.get(path, admin.key)
  expect([shown.body.data, listed.body.data]).toEqual([made, [made]])
  const change = { enabled: false, events: null, prompts: [tenant.prompt, tenant.prompt] }
  const changed = await service.patch(`${path}/${made.id}`, admin.key, change)
  const after = { ...made, enabled: false, events: null, prompts: [tenant.prompt] }
  expect(changed.body.data).toEqual({ ...after, disabled_reason: 'requested', disabled_at: time })
  expect((await service.delete(`${path}/${made.id}`, admin.key)).body).toEqual({ data: { id: made.id } })
  expect((await service.get(`${path}/${made.id}`, admin.key)).status).toBe(404)
  const log = await service.get('/audit?limit=3', admin.key)
  const details = { ...given, events: null, prompts: [tenant.prompt], enabled: false }
  expect(log.body.data).toMatchObject([
    { action: 'endpoint.removed', subject: made.id, details },
    { action: 'endpoint.updated', subject: made.id, details },
    { action: 'endpoint.created', subject: made.id, details: { ...given, enabled: true } },
  ])
  for (const { text } of [shown, listed, changed, log]) expect(text).not.toContain(secret)
})

test('an endpoint whose restored URL is none is listed without it, beside the others, and can be removed', async () => {
  const [broken, other] = [await create(), await create()]
  await service.services.db.sql`
    update webhook_endpoints set url = 'https://[none/secret' where public_id = ${broken.id}::text`
  const listed = await service.get(path, admin.key)
  expect(listed.body.data.map(({ id, url }: Row) => [id, url])).toEqual(
    expect.arrayContaining([
      [broken.id, '…'],
      [other.id, url],
    ]),
  )
  expect((await service.delete(`${path}/${broken.id}`, admin.key)).status).toBe(200)
})

test('what is secret of a URL is in no answer and no audit entry', async () => {
  const texts: string[] = []
  const call = async (answer: ReturnType<typeof service.get>) => {
    const { text, body } = await answer
    texts.push(text)
    return body
  }
  const json = { kind: 'slack', url: `https://hooks.slack.com${slackPath}` }
  const { id } = (await call(service.post(path, admin.key, json))).data
  expect((await call(service.get(`${path}/${id}`, admin.key))).data.url).toBe('https://hooks.slack.com/…')
  const details = [{ path: '/url', message: 'must be given with another kind' }]
  expect(await call(service.patch(`${path}/${id}`, admin.key, { kind: 'webhook' }))).toMatchObject({
    error: { details },
  })
  for (const given of [
    { url: `https://chat.example.com${slackPath}` },
    { url: `${url}?token=XXXXXXXX`, kind: 'webhook' },
  ]) {
    await call(service.patch(`${path}/${id}`, admin.key, given))
  }
  expect((await call(service.get(path, admin.key))).data).toMatchObject([{ id, url: `${url}?…` }])
  const wrong = { error: { details: [{ path: '/kind', message: 'must be slack for a URL of hooks.slack.com' }] } }
  expect(await call(service.post(path, admin.key, { url: json.url }))).toMatchObject(wrong)
  await call(service.post(`${path}/${id}/rotate`, admin.key, {}))
  await call(service.delete(`${path}/${id}`, admin.key))
  expect((await call(service.get('/audit', admin.key))).data[2].details.url).toBe(`${url}?…`)
  expect(texts.filter((text) => text.includes('XXXX'))).toEqual([])
})

test('a rotation keeps the old secret for the overlap, a day by default, or not at all', async () => {
  const { id, secret: first } = await create()
  const stored = () => service.services.db.sql`
    select secret, to_json(old_secrets) as old_secrets, old_secret_ends_at from webhook_endpoints where public_id = ${id}`
  service.clock.set('2026-11-10T12:00:00.000Z')
  const rotate = (json: object) => service.post(`${path}/${id}/rotate`, admin.key, json)
  const second = (await rotate({})).body.data
  expect(second.old_secret_ends_at).toBe('2026-11-11T12:00:00.000Z')
  const until = new Date(second.old_secret_ends_at)
  expect(await stored()).toEqual([{ secret: second.secret, old_secrets: [first], old_secret_ends_at: until }])
  const third = (await rotate({ overlap_seconds: 0 })).body.data
  expect(await stored()).toEqual([{ secret: third.secret, old_secrets: [], old_secret_ends_at: null }])
  const [last] = (await service.get('/audit?limit=1', admin.key)).body.data
  expect(last).toMatchObject({ action: 'endpoint.rotated', subject: id, details: { old_secret_ends_at: null } })
  for (const overlap_seconds of [-1, 2_592_001, 1.5, '60', null]) {
    expect(await rotate({ overlap_seconds })).toMatchObject(invalid('/overlap_seconds'))
  }
  service.clock.reset()
})

test('a rotation within the overlap keeps the secrets that sign so far, at most four', async () => {
  const { id, secret } = await create()
  const secrets = [secret]
  for (let number = 0; number < 5; number += 1) {
    secrets.unshift((await service.post(`${path}/${id}/rotate`, admin.key, {})).body.data.secret)
    const [row] = await service.services.db.sql<{ signing: string[] }>`
      select to_json(secret || old_secrets) as signing from webhook_endpoints where public_id = ${id}`
    expect(row?.signing).toEqual(secrets.slice(0, 5))
  }
})

test('an organisation has at most 20 endpoints, also of many created at the same time', async () => {
  const other = await service.createTenant()
  const made = await Promise.all(Array.from({ length: 24 }, () => service.post(path, admin.key, { url })))
  expect(made.filter(({ status }) => status === 201)).toHaveLength(20)
  const rejected = made.find(({ status }) => status === 422)
  expect(rejected?.body.error.message).toBe('The organisation has 20 endpoints. Remove one first.')
  expect((await service.get(path, admin.key)).body.data).toHaveLength(20)
  const { key } = await service.createKey(other, [...scopes])
  expect((await service.post(path, key, { url })).status).toBe(201)
})

test('the newest endpoint is listed first', async () => {
  const ids: string[] = []
  for (let number = 0; number < 5; number += 1) ids.unshift((await service.post(path, admin.key, { url })).body.data.id)
  expect((await service.get(path, admin.key)).body.data.map(({ id }: Row) => id)).toEqual(ids)
})

const https = 'must begin with https://, unless WEBHOOK_ALLOWED_HOSTS names its host'
test.each([
  [{}, '/url', 'must be given'],
  [{ url: '' }, '/url', 'must not be empty'],
  [{ url: 'example.com' }, '/url', 'must be a URL, such as https://example.com/webhooks'],
  [{ url: `https://example.com/${'x'.repeat(2_000)}` }, '/url', 'must have at most 2000 characters'],
  [{ url: 'https://exa\nmple.com' }, '/url', 'contains characters that are not allowed'],
  [{ url: 'http://example.com' }, '/url', https],
  [{ url: 'ftp://example.com' }, '/url', https],
  [{ url: 'https://user@example.com' }, '/url', 'must have no user name and no password'],
  [{ url: 'https://:XXXX@example.com' }, '/url', 'must have no user name and no password'],
  [{ url: `${url}#` }, '/url', 'must have no fragment'],
  [{ url, kind: 'teams' }, '/kind', 'must be webhook or slack'],
  [{ url, events: [] }, '/events', 'must not be empty'],
  [{ url, events: ['ping'] }, '/events/0', 'must be change.live, impact.decided, rate.changed or usage.threshold'],
  [{ url, prompts: ['pmt_none'] }, '/prompts/0', 'must be a prompt of the organisation'],
  [{ url, prompts: 'all' }, '/prompts', 'must be an array or null'],
  [{ url, enabled: 'yes' }, '/enabled', 'must be a boolean'],
])('%p is rejected, naming the field', async (json, field, message) => {
  const { id } = await create()
  const rejected = invalid([field, message])
  expect(await service.post(path, admin.key, json)).toMatchObject(rejected)
  const change = Object.keys(json).length > 0 ? rejected : { status: 422 }
  expect(await service.patch(`${path}/${id}`, admin.key, json)).toMatchObject(change)
})

test('an endpoint can be disabled also when its host and prompts are no longer allowed', async () => {
  const { id } = await create()
  const stored = { url: 'http://chat.internal/', prompts: ['pmt_erased'] }
  await service.services.db.sql`
    update webhook_endpoints set url = ${stored.url}, prompts = ${stored.prompts}::text[] where public_id = ${id}`
  const { status, body } = await service.patch(`${path}/${id}`, admin.key, { enabled: false })
  expect([status, body.data]).toEqual([200, expect.objectContaining({ ...stored, enabled: false })])
})

test('a prompt of another organisation is rejected like an unknown one', async () => {
  const other = await service.createTenant()
  const answer = await service.post(path, admin.key, { url, prompts: [tenant.prompt, other.prompt] })
  expect(answer).toMatchObject(invalid(['/prompts/1', 'must be a prompt of the organisation']))
})

test('a caller that may change an endpoint sees it whole, without the scope to read', async () => {
  const writer = await keyWith('webhooks:write')
  const { id } = await create()
  const changed = await service.patch(`${path}/${id}`, writer, { enabled: true })
  expect(changed.text).toBe((await service.get(`${path}/${id}`, admin.key)).text)
  const rotated = (await service.post(`${path}/${id}/rotate`, writer, {})).body.data
  const secret = expect.stringMatching(/^whsec_/)
  expect(rotated).toEqual({ ...changed.body.data, secret, old_secret_ends_at: time })
  const event = await sendEvent()
  const sent = await service.post(`${path}/${id}/deliveries/${event}/redeliver`, writer)
  const listed = await service.get(`${path}/${id}/deliveries`, admin.key)
  expect(sent.body.data).toMatchObject({ id: event, attempts: 0, next_attempt_at: time })
  expect(Object.keys(sent.body.data)).toEqual(Object.keys(listed.body.data[0]))
})

test('enabling an endpoint clears why it was disabled and since when it fails; disabling it again keeps both', async () => {
  const { db } = service.services
  const { id } = await create()
  const change = async (enabled: boolean) => (await service.patch(`${path}/${id}`, admin.key, { enabled })).body.data
  const failing = { failing_since_at: '2026-11-05T12:00:00.000Z', disabled_at: '2026-11-10T12:00:00.000Z' }
  await db.sql`
    update webhook_endpoints
    set failing_since_at = ${failing.failing_since_at}, disabled_at = ${failing.disabled_at}, disabled_reason = 'failing'
    where public_id = ${id}`
  expect(await change(false)).toMatchObject({ ...failing, enabled: false, disabled_reason: 'failing' })
  const cleared = { failing_since_at: null, disabled_at: null, disabled_reason: null }
  expect(await change(true)).toMatchObject({ ...cleared, enabled: true })
})

test('deliveries are listed by page with what the receiver said, and go with their endpoint', async () => {
  const { db } = service.services
  const { id } = await create()
  const sent = [await sendEvent(), await sendEvent(), await sendEvent()]
  const said = { status: 'failed', attempts: 10, response_code: 503, response_text: 'x'.repeat(1_000) }
  await setOutcome(service, sent[1] as string, { status: 'failed', attempts: 10, code: 503, text: said.response_text })
  const list = async (query = '') => (await service.get(`${path}/${id}/deliveries${query}`, admin.key)).body
  const { data, pagination } = await list('?limit=2')
  expect(data).toMatchObject([
    { id: sent[2], type: 'ping', created_at: time },
    { id: sent[1], ...said, last_attempt_at: '2026-11-10T12:00:00.000Z', next_attempt_at: null },
  ])
  const rest = await list(`?cursor=${pagination.next_cursor}`)
  expect(rest).toMatchObject({ data: [{ id: sent[0] }], pagination: { next_cursor: null } })
  const link = (await service.get(`${path}/${id}/deliveries?limit=2`, admin.key)).headers.get('link')
  expect(link).toStartWith(`</api/v1/webhooks/endpoints/${id}/deliveries?limit=2&cursor=`)
  await service.delete(`${path}/${id}`, admin.key)
  const left = await db.sql`
    select 1 from webhook_deliveries d join webhook_events v on v.id = d.event_id where v.public_id = any (${sent})`
  expect(left).toHaveLength(0)
})

test('an event is sent again with every attempt that a new one has, unless the endpoint is disabled', async () => {
  const { id } = await create()
  const event = await sendEvent()
  const { id: other } = await create()
  await setOutcome(service, event, { status: 'failed', attempts: 10, code: 500, text: '' })
  const redeliver = (endpoint: string, of: string) =>
    service.post(`${path}/${endpoint}/deliveries/${of}/redeliver`, admin.key)
  const due = { status: 'pending', attempts: 0, response_code: 500 }
  const again = await redeliver(id, event)
  expect(again).toMatchObject({ status: 200, body: { data: { id: event, ...due } } })
  expect(Date.parse(again.body.data.next_attempt_at)).toBeWithin(Date.now() - 60_000, Date.now() + 1)
  const [last] = (await service.get('/audit?limit=1', admin.key)).body.data
  expect(last).toMatchObject({ action: 'endpoint.redelivered', subject: id, details: { event } })
  for (const unknown of ['msg_none', 'none', '%00']) expect((await redeliver(id, unknown)).status).toBe(404)
  expect((await redeliver(other, event)).status).toBe(404)
  await service.patch(`${path}/${id}`, admin.key, { enabled: false })
  expect(await redeliver(id, event)).toMatchObject(invalid('endpoint_id'))
})
