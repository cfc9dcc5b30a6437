import { beforeEach, expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { describeChange } from '../../src/impact/sentence.ts'
import { scopes } from '../../src/lib/scopes.ts'
import { requireOrganisation, setSuspended } from '../../src/orgs/manage.ts'
import { emitEvent } from '../../src/webhooks/events.ts'
import { selectBacklog } from '../../src/webhooks/store_events.ts'
import { eventually, type Row } from '../program.ts'
import { entry, type Tenant } from '../service.ts'
import { useNewTenant, useOwnService } from '../use.ts'
import { emitOn } from './emit.ts'
import { hang, type Received, useReceiver } from './receiver.ts'

const service = useOwnService({ limits: { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1' } })
const tenant = useNewTenant(service)
const receiver = useReceiver()
const path = '/webhooks/endpoints'

beforeEach(() => {
  service.clock.reset()
  receiver.received.length = 0
  receiver.answer = () => new Response(null, { status: 204 })
})

const admins = new Map<string, Promise<{ key: string }>>()

async function adminOf(of: Tenant): Promise<string> {
  const admin = admins.get(of.org) ?? service.createKey(of, [...scopes])
  admins.set(of.org, admin)
  return (await admin).key
}

async function createEndpoint(more: object = {}, of: Tenant = tenant): Promise<Row> {
  const { status, body } = await service.post(path, await adminOf(of), { url: receiver.url, ...more })
  expect(status).toBe(201)
  return body.data
}

const record = (more: object = {}, { prompt, key }: Tenant = tenant) =>
  service.post(`/prompts/${prompt}/history`, key, entry(more))

const emit = ({ org }: Tenant = tenant) => emitOn(service.services.db, org)

const show = async (id: string): Promise<Row> => (await service.get(`${path}/${id}`, await adminOf(tenant))).body.data

const change = async (id: string, json: object) => service.patch(`${path}/${id}`, await adminOf(tenant), json)

/** The entries of the audit log on an endpoint, newest first. */
const auditOf = async (id: string): Promise<Row[]> =>
  (await service.get('/audit', await adminOf(tenant))).body.data.filter(({ subject }: Row) => subject === id)

const deliveriesOf = async (id: string, of: Tenant = tenant): Promise<Row[]> =>
  (await service.get(`${path}/${id}/deliveries`, await adminOf(of))).body.data

const statesOf = async (id: string, of?: Tenant) =>
  (await deliveriesOf(id, of)).map(({ status, attempts }) => [status, attempts])

const times = <T>(number: number, one: T): T[] => Array(number).fill(one)

/** The commits of the changes that were received. */
const receivedCommits = () => receiver.received.map(({ body }) => JSON.parse(body).data.change.commit_sha)

/** Moves the next attempts of the tenant's pending deliveries. */
const attemptIn = (hours: number) => service.services.db.sql`
  update webhook_deliveries d
  set next_attempt_at = now() + make_interval(hours => ${hours}::integer)
  from webhook_endpoints e
  join organisations o on o.id = e.organisation_id
  where e.id = d.endpoint_id and o.public_id = ${tenant.org} and d.status = 'pending'`

test('a change that goes live is sent once, signed with both secrets during a rotation', async () => {
  const { id, secret } = await createEndpoint()
  const { body: rotated } = await service.post(`${path}/${id}/rotate`, await adminOf(tenant), {})
  const given = entry({ title: 'Greet by first name' })
  const first = await service.post(`/prompts/${tenant.prompt}/history`, tenant.key, given)
  await service.post(`/prompts/${tenant.prompt}/history`, tenant.key, given)
  await eventually(() => statesOf(id), [['delivered', 1]])
  const [{ headers, body }] = receiver.received as [Received]
  for (const each of [secret, rotated.data.secret]) {
    expect(new Webhook(each).verify(body, headers)).toEqual({
      type: 'change.live',
      timestamp: expect.stringMatching(/Z$/),
      data: {
        ...{ prompt: { id: tenant.prompt, name: 'test' }, change: first.body.data },
        sentence: `${given.commit_sha.slice(0, 7)} went live: Greet by first name`,
      },
    })
  }
  expect(headers).toMatchObject({ 'content-type': 'application/json', 'user-agent': expect.stringMatching(/^prompt-/) })
  const [delivery] = await deliveriesOf(id)
  expect(delivery).toMatchObject({ id: headers['webhook-id'], response_code: 204, next_attempt_at: null })
  expect(receiver.received).toHaveLength(1)
})

test('the old secret signs no longer after the overlap', async () => {
  const { id, secret } = await createEndpoint()
  await service.post(`${path}/${id}/rotate`, await adminOf(tenant), { overlap_seconds: 0 })
  await emit()
  await eventually(() => statesOf(id), [['delivered', 1]])
  const [{ headers, body }] = receiver.received as [Received]
  expect(headers['webhook-signature']?.split(' ')).toHaveLength(1)
  expect(() => new Webhook(secret).verify(body, headers)).toThrow('No matching signature')
})

test('events of a suspended organisation wait until it is resumed', async () => {
  const { db, clock } = service.services
  const other = await service.createTenant()
  const [{ id }, { id: otherId }] = [await createEndpoint(), await createEndpoint({}, other)]
  await setSuspended(db, clock, tenant.org, true)
  const event = await emit()
  await emit(other)
  await eventually(() => statesOf(otherId, other), [['delivered', 1]])
  expect(receiver.received).toHaveLength(1)
  expect(await selectBacklog(db.sql)).toMatchObject({ oldest: null })
  await setSuspended(db, clock, tenant.org, false)
  await eventually(() => receiver.received.map((one) => one.id === event), [false, true])
  await eventually(() => statesOf(id), [['delivered', 1]])
})

test('a body is below 32 kB, however long the names and the fields of a change are', async () => {
  const { id } = await createEndpoint()
  const wide = (length: number) => '漢'.repeat(length)
  const renamed = await service.patch(`/prompts/${tenant.prompt}`, await adminOf(tenant), { name: wide(200) })
  const pr = { action: 'pr_merged', pr_number: 2 ** 31 - 1, pr_url: `https://${wide(1_992)}` }
  const names = {
    branch_name: wide(255),
    title: wide(200),
    authors: Array(10).fill(wide(200)),
    user: { name: wide(200), email: wide(320) },
  }
  const recorded = await record({ ...pr, ...names, commit_sha: wide(100) })
  expect([renamed.status, recorded.status]).toEqual([200, 201])
  await eventually(() => statesOf(id), [['delivered', 1]])
  const [live] = receiver.received as [Received]
  const { prompt, change } = JSON.parse(live.body).data
  expect([prompt.name, change.title]).toEqual([wide(200), wide(200)])
  const [estimate, total] = [{ value: -0.123456, low: -0.123456, high: -0.123456 }, Number.MAX_SAFE_INTEGER]
  const impact = {
    change,
    base: { id: change.id, ...pr, commit_sha: wide(100), title: wide(200), skipped: 9 },
    window: { from: change.created_at, until: change.created_at },
    signals: { positive: total, negative: total, total, by_commit: total, by_time: total },
    rate: estimate,
    difference: estimate,
    verdict: 'worse',
    signals_needed: null,
    wander: { points: 12.34, days: 90 },
  } as const
  const { db, clock } = service.services
  const { organisationId } = await requireOrganisation(db, tenant.org)
  const data = { prompt, ...impact, sentence: describeChange(impact) }
  await emitEvent(db.sql, { organisationId, type: 'impact.decided', dedupKey: 'long', data, now: clock.now() })
  await eventually(() => receiver.received.length, 2)
  for (const { body } of receiver.received) expect(Buffer.byteLength(body)).toBeWithin(9_000, 32_000)
})

test('a correction of records tells nothing: another live branch, or a removed entry', async () => {
  await createEndpoint()
  const admin = await adminOf(tenant)
  const setLive = (live_branch: string) => service.patch(`/prompts/${tenant.prompt}`, admin, { live_branch })
  const readLive = async () =>
    (await service.get(`/prompts/${tenant.prompt}/impact`, admin)).body.data[0].change.commit_sha
  await setLive('main')
  await record({ commit_sha: 'a1' })
  await record({ commit_sha: 'b1', branch_name: 'next' })
  await setLive('next')
  expect(await readLive()).toBe('b1')
  const { body } = await record({ commit_sha: 'b2', branch_name: 'next' })
  const removed = await service.delete(`/prompts/${tenant.prompt}/history/${body.data.id}`, admin)
  expect([removed.status, await readLive()]).toEqual([200, 'b1'])
  // A rollback by deploying is told.
  await record({ commit_sha: 'b3', branch_name: 'next' })
  await record({ commit_sha: 'b1', branch_name: 'next', user: { name: 'Ada', email: 'a@b.c' } })
  await eventually(receivedCommits, ['a1', 'b2', 'b3', 'b1'])
})

const ago = (hours: number) => new Date(Date.now() - hours * 3_600_000).toISOString()

test('only the newest change is told, or one of the last minutes, but none older than a day or on another branch', async () => {
  const { id } = await createEndpoint({ events: ['change.live'] })
  for (const [hours, commit_sha] of [
    [25, 'a'],
    [2, 'b'],
    [3, 'c'],
    [1, 'b'],
  ] as const) {
    await record({ created_at: ago(hours), commit_sha, branch_name: `of ${hours}` })
  }
  await record({ action: 'pr_opened', pr_number: 1, pr_url: 'https://example.com/1' })
  const entries = [4, 0.5, 0.6].map((hours) => {
    return { prompt_id: tenant.prompt, ...entry({ created_at: ago(hours), commit_sha: `d${hours}` }) }
  })
  const admin = await adminOf(tenant)
  await service.patch(`/prompts/${tenant.prompt}`, admin, { live_branch: 'main' })
  await record({ created_at: ago(0.7), branch_name: 'preview' })
  for (const dry_run of [true, false]) {
    expect((await service.post('/history/batch', admin, { entries, dry_run })).status).toBe(200)
  }
  for (const minutes of [1, 9, 11]) await record({ created_at: ago(minutes / 60), commit_sha: `e${minutes}` })
  await eventually(() => statesOf(id), times(4, ['delivered', 1]))
  expect(receivedCommits()).toEqual(['b', 'd0.5', 'e1', 'e9'])
})

test('an endpoint gets the events and prompts that it chose, and nothing while it or the prompt is out of use', async () => {
  const other = (await service.post('/prompts', await adminOf(tenant), { name: 'Other' })).body.data.id
  const unwanted = [{ events: ['impact.decided'] }, { prompts: [other] }, { enabled: false }]
  const chosen = [{ prompts: [tenant.prompt] }, ...unwanted]
  const ids = await Promise.all(chosen.map(async (one) => (await createEndpoint(one)).id))
  const elsewhere = await service.createTenant()
  ids.push((await createEndpoint({}, elsewhere)).id)
  await service.patch(`/prompts/${elsewhere.prompt}`, await adminOf(elsewhere), { archived: true })
  await record({}, elsewhere)
  await record()
  await eventually(() => statesOf(ids[0]), [['delivered', 1]])
  const { sql } = service.services.db
  const rows = await sql`
    select from webhook_deliveries d join webhook_endpoints e on e.id = d.endpoint_id
    where e.public_id = any (${ids}::text[])`
  expect(rows).toHaveLength(1)
})

test('a failed attempt is made again by its schedule, with the same id and the time of the attempt', async () => {
  const { id, secret } = await createEndpoint()
  receiver.answer = () => new Response('try later', { status: 503, headers: { 'retry-after': '8' } })
  await emit()
  await eventually(() => statesOf(id), [['pending', 1]])
  const [failed] = (await deliveriesOf(id)) as [Row]
  expect(failed).toMatchObject({ response_code: 503, response_text: 'try later' })
  expect(Date.parse(failed.next_attempt_at) - Date.parse(failed.last_attempt_at)).toBeGreaterThanOrEqual(8_000)
  expect((await show(id)).failing_since_at).toBe(failed.last_attempt_at)
  await attemptIn(1)
  receiver.answer = () => Response.redirect('http://169.254.169.254/')
  await emit()
  await eventually(() => statesOf(id), times(2, ['pending', 1]))
  await attemptIn(0)
  await eventually(() => statesOf(id), times(2, ['pending', 2]))
  receiver.answer = () => new Response(null, { status: 200 })
  await attemptIn(0)
  await eventually(() => statesOf(id), times(2, ['delivered', 3]))
  const attempts = receiver.received.filter((one) => one.id === failed.id)
  expect(attempts).toHaveLength(3)
  for (const { body, headers } of attempts) expect(new Webhook(secret).verify(body, headers)).toBeTruthy()
  const last = (await deliveriesOf(id)).find((one) => one.id === failed.id)
  const seconds = [failed, last].map((one) => String(Math.floor(Date.parse(one?.last_attempt_at) / 1_000)))
  expect([attempts.at(0), attempts.at(-1)].map((one) => one?.headers['webhook-timestamp'])).toEqual(seconds)
  expect((await show(id)).failing_since_at).toBeNull()
})

test.each([
  ['gone', 410, 0, 'failed'],
  ['failing', 500, 1, 'pending'],
] as const)('an endpoint is disabled as %s, with an audit entry, and counted', async (reason, code, made, status) => {
  const { id } = await createEndpoint()
  const { db, metrics } = service.services
  receiver.answer = () => new Response(null, { status: code })
  await db.sql`update webhook_endpoints set failing_since_at = now() - interval '5 days' where public_id = ${id}`
  await emitOn(db, tenant.org, made)
  await eventually(() => statesOf(id), [[status, made + 1]])
  expect(await show(id)).toMatchObject({ enabled: false, disabled_reason: reason })
  expect(await auditOf(id)).toMatchObject([
    { actor: 'delivery', action: 'endpoint.disabled', details: { reason } },
    { action: 'endpoint.created' },
  ])
  await emit()
  expect(await statesOf(id)).toEqual([[status, made + 1]])
  await eventually(async () => /webhook_endpoints_disabled [1-9]/.test(await metrics.text()), true)
})

test('an endpoint that is enabled again is sent the pending events immediately', async () => {
  const { id } = await createEndpoint()
  receiver.answer = () => new Response(null, { status: 503 })
  await emit()
  await eventually(() => statesOf(id), [['pending', 1]])
  await attemptIn(1)
  await change(id, { enabled: false })
  receiver.answer = () => new Response(null, { status: 204 })
  await change(id, { enabled: true })
  await eventually(() => statesOf(id), [['delivered', 2]])
})

test('an organisation may test its endpoints ten times a minute', async () => {
  const [{ id }, other] = [await createEndpoint(), await service.createTenant()]
  const elsewhere = await createEndpoint({}, other)
  service.clock.set('2026-11-15T12:00:00Z')
  for (let number = 0; number < 10; number += 1) expect((await sendPing(id)).status).toBe(200)
  const { status, body, headers } = await sendPing(id)
  expect([status, body.error.limited_by, headers.get('retry-after')]).toEqual([429, 'organisation_rate', '6'])
  expect(receiver.received).toHaveLength(10)
  expect((await service.post(`${path}/${elsewhere.id}/test`, await adminOf(other))).status).toBe(200)
})

/** Makes the last attempt of an event, and answers it after a change. Attempts that follow are answered with 204. */
async function changeDuringAttempt(status: number, makeChange: (event: string) => Promise<unknown>) {
  const changed = Promise.withResolvers<void>()
  receiver.answer = async () => {
    receiver.answer = () => new Response(null, { status: 204 })
    await changed.promise
    return new Response(null, { status })
  }
  const event = await emitOn(service.services.db, tenant.org, 9)
  await eventually(() => receiver.received.length, 1)
  await makeChange(event)
  changed.resolve()
}

const redeliver = async (id: string, event: string) =>
  service.post(`${path}/${id}/deliveries/${event}/redeliver`, await adminOf(tenant), {})

const renew = (id: string) => change(id, { url: `${receiver.url}/new` })
const setEnabled = (enabled: boolean) => (id: string) => change(id, { enabled })

test.each([
  ['an event that is sent again has every attempt', 500, 0, redeliver, ['delivered', 1], true, 2],
  ['the answer of an old URL is ignored', 410, 0, renew, ['delivered', 10], true, 2],
  ['an endpoint that is enabled forgets its failures', 500, 5, setEnabled(true), ['failed', 10], true, 1],
  ['an endpoint is not disabled twice', 410, 0, setEnabled(false), ['failed', 10], false, 1],
] as const)(
  'during an attempt: %s, and no other begins',
  async (_, status, failingDays, makeChange, state, enabled, attempts) => {
    const { id } = await createEndpoint()
    await service.services.db.sql`
      update webhook_endpoints set failing_since_at = now() - make_interval(days => ${failingDays})
      where public_id = ${id}`
    await changeDuringAttempt(status, (event) => makeChange(id, event))
    await eventually(() => statesOf(id), [state])
    expect([(await show(id)).enabled, receiver.received.length]).toEqual([enabled, attempts])
    expect((await auditOf(id)).map(({ action }) => action)).not.toContain('endpoint.disabled')
  },
)

test('an endpoint that is disabled by the answer to an erased event is in the audit log', async () => {
  const { id } = await createEndpoint()
  const { sql } = service.services.db
  await changeDuringAttempt(410, (event) => sql`delete from webhook_events where public_id = ${event}`)
  await eventually(async () => (await show(id)).disabled_reason, 'gone')
  expect((await auditOf(id))[0]).toMatchObject({ action: 'endpoint.disabled', details: { reason: 'gone' } })
})

test('one that hangs delays neither other endpoints of the organisation nor other organisations', async () => {
  receiver.answer = (path) => (path === '/slow' ? hang() : new Response(null, { status: 204 }))
  const slow = await createEndpoint({ url: `${receiver.url}/slow` })
  await emit()
  await service.services.db.sql`
    with made as (
      insert into webhook_events (public_id, organisation_id, type, dedup_key, data, created_at)
      select 'msg_' || n || e.public_id, e.organisation_id, 'ping', 'many ' || n, '{}', now() - interval '1 hour'
      from webhook_endpoints e, generate_series(1, 2000) n
      where e.public_id = ${slow.id}
      returning organisation_id, id
    )
    insert into webhook_deliveries (organisation_id, endpoint_id, event_id, next_attempt_at)
    select m.organisation_id, e.id, m.id, now() - interval '1 hour'
    from made m, webhook_endpoints e where e.public_id = ${slow.id}`
  await eventually(() => receiver.received.length, 1)
  const elsewhere = await service.createTenant()
  const fast = await createEndpoint()
  const theirs = await createEndpoint({}, elsewhere)
  for (let n = 0; n < 5; n++) await Promise.all([record(), record({}, elsewhere)])
  await eventually(() => statesOf(fast.id), times(5, ['delivered', 1]))
  await eventually(() => statesOf(theirs.id, elsewhere), times(5, ['delivered', 1]))
  // One at a time is in flight.
  expect(receiver.received.filter(({ path }) => path === '/slow')).toHaveLength(1)
  await service.delete(`${path}/${slow.id}`, await adminOf(tenant))
})

test.each([-2, 2])('a replica whose clock is %p hours off sends in time, and waits for retries', async (hours) => {
  service.clock.set(new Date(Date.now() + hours * 3_600_000).toISOString())
  const failing = await createEndpoint({ url: `${receiver.url}/failing` })
  receiver.answer = (path) => new Response(null, { status: path === '/failing' ? 503 : 204 })
  await emit()
  await eventually(() => statesOf(failing.id), [['pending', 1]])
  await attemptIn(1)
  const free = await createEndpoint()
  await emit()
  await eventually(() => statesOf(free.id), [['delivered', 1]])
  const { headers, body } = receiver.received.find(({ path }) => path === '/') as Received
  // Receivers reject a time that is minutes off.
  expect(new Webhook(free.secret).verify(body, headers)).toBeTruthy()
  await eventually(() => statesOf(failing.id), times(2, ['pending', 1]))
})

test('a chat gets a message a second, which says what happened', async () => {
  const { id } = await createEndpoint({ kind: 'slack' })
  // When they were sent: on a busy machine one may take longer to arrive than the next.
  const sentAt: Date[] = []
  receiver.answer = async () => {
    const rows = await service.services.db.sql<{ at: Date }>`
      select last_sent_at as at from webhook_endpoints where public_id = ${id}`
    sentAt.push(...rows.map(({ at }) => at))
    return new Response(null, { status: 204 })
  }
  await record({ title: 'Greet by first name' })
  await emit()
  await emit()
  await eventually(() => statesOf(id), times(3, ['delivered', 1]))
  const [first] = receiver.received as [Received]
  expect(JSON.parse(first.body)).toEqual({
    text: expect.stringContaining('Greet by first name'),
    blocks: expect.any(Array),
  })
  expect(first.headers['webhook-signature']).toBeUndefined()
  const [one, two, three] = sentAt.map(Number) as [number, number, number]
  expect([two - one, three - two].filter((ms) => ms < 1_000)).toEqual([])
})

const sendPing = async (id: string) => service.post(`${path}/${id}/test`, await adminOf(tenant))

test('a test sends one signed ping, also to a disabled endpoint, and answers with the outcome', async () => {
  const { id, secret } = await createEndpoint({ enabled: false, url: `${receiver.url}/ping` })
  receiver.answer = () => new Response('x'.repeat(2_000))
  const { status, body } = await sendPing(id)
  expect([status, body.data.delivered, body.data.response_code]).toEqual([200, true, 200])
  expect(body.data.response_text).toBe('x'.repeat(1_000))
  // Deliveries and pings of an earlier test may arrive meanwhile.
  const pings = receiver.received.filter(({ path }) => path === '/ping')
  const [{ headers, body: sent }] = pings as [Received]
  expect(pings.map((one) => one.id)).toEqual([body.data.id])
  expect(new Webhook(secret).verify(sent, headers)).toMatchObject({ type: 'ping', data: {} })
  receiver.answer = () => new Response('no', { status: 500 })
  expect((await sendPing(id)).body.data).toMatchObject({ delivered: false, response_code: 500, response_text: 'no' })
  expect(await deliveriesOf(id)).toEqual([])
})

test('http is accepted for the hosts that the operator allows, and for no others', async () => {
  const admin = await adminOf(tenant)
  const statusOf = async (host: string) => (await service.post(path, admin, { url: `http://${host}/` })).status
  const hosts = ['127.0.0.1:9', '127.0.0.2', 'localhost']
  expect(await Promise.all(hosts.map(statusOf))).toEqual([201, 422, 422])
})

test('an organisation has two tests in flight, which outlast the deadline of other requests', async () => {
  const { id } = await createEndpoint()
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  receiver.answer = () => released.then(() => new Response(null, { status: 204 }))
  const waiting = [sendPing(id), sendPing(id)]
  const startedAt = performance.now()
  await eventually(() => receiver.received.length, 2)
  expect((await sendPing(id)).status).toBe(503)
  await eventually(() => performance.now() - startedAt > 5_000, true)
  release()
  const answers = (await Promise.all(waiting)).map(({ status, body }) => [status, body.data?.delivered])
  expect(answers).toEqual(times(2, [200, true]))
})
