import { expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { sign } from '@octokit/webhooks-methods'
import { pruneGithub } from '../../src/github/settings.ts'
import type { Answer } from '../client.ts'
import { useOwnService } from '../use.ts'
import { change, createHook, headersOf, hookEachTest, paths, type Sending } from './hook.ts'
import { ping, pullRequest, push, sha } from './payloads.ts'

const { service, hook } = hookEachTest(useOwnService())

const deploy = () => push({ commits: [change] })
const mebibyte = 1024 * 1024
const form = { 'content-type': 'application/x-www-form-urlencoded' }
const signature = (value: string) => ({ headers: { 'x-hub-signature-256': value } })

/** All of an answer but what differs between any two. */
const shapeOf = ({ status, headers, text }: Answer) => ({
  status,
  headers: [...headers.keys()].sort(),
  authenticate: headers.get('www-authenticate'),
  text: text.replace(/"request_id":"[^"]+"/, ''),
})

const rejection = async () => shapeOf(await hook.deliver('push', deploy(), { secret: 'wrong' }))

test('a wrong secret is rejected as unauthorized, and nothing is recorded', async () => {
  const { status, headers, body } = await hook.deliver('push', deploy(), { secret: 'wrong' })
  expect(status).toBe(401)
  const request_id = headers.get('x-request-id')
  expect(body).toEqual({ error: { code: 'unauthorized', message: expect.any(String), request_id } })
  expect(await hook.history('greeting')).toEqual([])
})

test.each<[string, (body: string) => Sending | Promise<Sending>]>([
  ['no signature', () => signature('')],
  ['garbage', () => signature('garbage')],
  ['a SHA-1 digest', () => signature(`sha1=${'0'.repeat(40)}`)],
  ['an empty digest', () => signature('sha256=')],
  ['a truncated digest', async (body) => signature((await sign(hook.secret, body)).slice(0, -1))],
  ['a digest in upper case', async (body) => signature((await sign(hook.secret, body)).toUpperCase())],
  ['the signature of another body', async (body) => signature(await sign(hook.secret, `${body} `))],
  ['an empty body', async () => ({ body: '', ...signature(await sign(hook.secret, 'x')) })],
  ["another organisation's secret", async () => ({ secret: (await createHook(service)).secret })],
  // Rejected before the body is read, else this would be a 422.
  [
    'no possible signature of a body that is too large',
    () => ({ body: 'x'.repeat(26 * mebibyte), ...signature('sha256=0') }),
  ],
])('%s is rejected like a wrong secret', async (_, arrange) => {
  const payload = deploy()
  const sending = await arrange(JSON.stringify(payload))
  expect(shapeOf(await hook.deliver('push', payload, sending))).toEqual(await rejection())
})

test('unknown organisations, malformed ones and those without a webhook are rejected alike', async () => {
  const { org } = await service.createTenant()
  const body = JSON.stringify(deploy())
  for (const name of [org, 'org_none', 'none', 'org_%00', 'org_a%27b', `org_${'x'.repeat(200)}`]) {
    const headers = await headersOf('push', body, { secret: hook.secret })
    const answer = await service.call('POST', `/webhooks/github/${name}`, { body, headers })
    expect({ name, ...shapeOf(answer) }).toEqual({ name, ...(await rejection()) })
  }
})

test.each([
  ['ping', ping, 'Ping received: the webhook works.'],
  ['issues', { action: 'opened' }, 'This event does not change a history.'],
  ['', {}, 'This event does not change a history.'],
])('the event %p is acknowledged and ignored', async (event, payload, message) => {
  const { status, body } = await hook.deliver(event, payload)
  expect({ status, body }).toEqual({ status: 200, body: { data: { recorded: 0, outcome: 'ignored', message } } })
})

const oddId = 'must have 1 to 255 printable ASCII characters'
const otherType = { 'content-type': 'text/plain' }

test.each<[string, Sending, string]>([
  ['broken JSON', { body: '{"ref":' }, 'must be JSON'],
  ['a form without a payload', { body: 'a=b', headers: form }, 'must be JSON'],
  ['another content type', { headers: otherType }, 'must be sent with "Content-Type: application/json"'],
  ['no id', { headers: { 'x-github-delivery': '' } }, oddId],
  ['too long an id', { delivery: 'x'.repeat(256) }, oddId],
  ['more than 5 MiB', { body: ' '.repeat(5 * mebibyte + 1) }, 'must be at most 5 MiB'],
])('a signed delivery with %s is invalid', async (_, sending, message) => {
  const { status, body } = await hook.deliver('push', deploy(), sending)
  const error = { code: 'validation_error', details: [{ message }] }
  expect({ status, error: body.error }).toMatchObject({ status: 422, error })
})

test.each([
  ['push', [], ''],
  ['push', { ...deploy(), commits: [{}] }, '/commits/0/author'],
  ['push', { ...deploy(), repository: null }, '/repository'],
  ['pull_request', { action: 'opened' }, '/pull_request'],
  ['pull_request', { ...pullRequest('opened'), repository: {} }, '/repository/id'],
  ['push', push({ repository: 'Acme/Pro\0mpts' }), '/repository/full_name'],
  ['push', { ...deploy(), repository: { ...deploy().repository, id: 0 } }, '/repository/id'],
  ['repository', { action: 'renamed' }, '/repository'],
])('a %s of the wrong shape is invalid: %#', async (event, payload, path) => {
  const { status, body } = await hook.deliver(event, payload)
  expect({ status, path: body.error.details[0].path }).toEqual({ status: 422, path })
})

test.each<[string, (json: string) => Sending]>([
  // GitHub sends it by default.
  ['as a form', (json) => ({ body: new URLSearchParams({ payload: json }).toString(), headers: form })],
  ['of 5 MiB', (json) => ({ body: json.padEnd(5 * mebibyte) })],
  ['with a byte order mark, which the signature covers too', (json) => ({ body: `\ufeff${json}` })],
])('a delivery %s is accepted', async (_, arrange) => {
  expect(await hook.send('push', {}, arrange(JSON.stringify(deploy())))).toBe(1)
})

test('a delivery that is sent again does nothing, whatever happened since', async () => {
  const delivery = randomUUID()
  const opening = pullRequest('opened', { head: 'warmer' })
  await hook.send('push', { ...deploy(), ref: 'refs/heads/warmer' })
  expect(await hook.send('pull_request', opening, { delivery })).toBe(1)
  await hook.pull('closed', { head: 'warmer', closedAt: '2026-11-14T14:00:00Z' })
  const before = await hook.history('greeting')
  const { body } = await hook.deliver('pull_request', { ...opening, action: 'reopened' }, { delivery })
  const repeated = { recorded: 0, outcome: 'repeated', message: 'The event was already recorded.' }
  expect(body.data).toEqual(repeated)
  await hook.push({ commits: [{ modified: [paths.farewell] }] })
  expect(await hook.history('greeting')).toEqual(before)
  expect((await hook.history('farewell')).map(({ action }) => action)).toEqual(['deployed'])
})

test('ten concurrent copies of one delivery are recorded once', async () => {
  const delivery = randomUUID()
  const counts = await Promise.all(
    Array.from({ length: 10 }, (_, index) => hook.send('push', { ...deploy(), after: `commit${index}` }, { delivery })),
  )
  expect(counts.sort()).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
  expect(await hook.history('greeting')).toHaveLength(1)
})

test('the same id from two organisations is two deliveries', async () => {
  const other = await createHook(service)
  const delivery = randomUUID()
  expect(await hook.send('push', deploy(), { delivery })).toBe(1)
  expect(await other.send('push', deploy(), { delivery })).toBe(1)
})

test('a delivery that fails half way leaves nothing, and can be sent again', async () => {
  const { sql } = service.services.db
  const delivery = randomUUID()
  const payload = push({ branch: 'warmer', commits: [change] })
  await hook.pull('opened')
  await sql.script(`alter table history_entries add constraint broken check (branch_name <> 'warmer') not valid`)
  expect((await hook.deliver('push', payload, { delivery })).status).toBe(500)
  await sql.script('alter table history_entries drop constraint broken')
  expect(await hook.send('push', payload, { delivery })).toBe(1)
})

test('a delivery that found no linked prompt can be sent again once there is one', async () => {
  const { sql } = service.services.db
  const delivery = randomUUID()
  await sql`update prompts set path = 'elsewhere' where public_id = ${hook.prompts.greeting}`
  const payload = deploy()
  expect(await hook.send('push', payload, { delivery })).toBe(0)
  await sql`update prompts set path = ${paths.greeting} where public_id = ${hook.prompts.greeting}`
  expect(await hook.send('push', payload, { delivery })).toBe(1)
})

test('a captured body is not carried out again under another id, which is not signed', async () => {
  await hook.push({ branch: 'warmer', after: sha('head'), commits: [change] })
  const events = ['opened', 'closed', 'reopened'].map((action) => pullRequest(action, { headSha: sha('head') }))
  for (const event of events) await hook.send('pull_request', event)
  const story = await hook.story('greeting')
  expect(story).toHaveLength(2)
  for (const event of [...events, ...events]) {
    expect((await hook.deliver('pull_request', event)).body.data.outcome).toBe('repeated')
  }
  expect(await hook.story('greeting')).toEqual(story)
})

test('deliveries are remembered for a week, and pushes for a year', async () => {
  const { db } = service.services
  service.clock.set('2026-11-14T12:00:00Z')
  await db.sql`delete from github_affected_prompts`
  await hook.push({ branch: 'warmer', commits: [change] })
  const left = async (instant: string) => {
    service.clock.set(instant)
    await pruneGithub(db, service.clock.now())
    const [counts] = await db.sql`
      select
        (select count(*) from github_events d join organisations o on o.id = d.organisation_id
         where o.public_id = ${hook.tenant.org}) as deliveries,
        (select count(*) from github_affected_prompts) as pushes`
    return counts
  }
  expect(await left('2026-11-21T12:00:00Z')).toEqual({ deliveries: 1, pushes: 1 })
  expect(await left('2026-11-21T12:00:01Z')).toEqual({ deliveries: 0, pushes: 1 })
  expect(await left('2027-11-14T12:00:00Z')).toEqual({ deliveries: 0, pushes: 1 })
  expect(await left('2027-11-14T12:00:01Z')).toEqual({ deliveries: 0, pushes: 0 })
})

test('a pull request is remembered for a year after it has ended, and an open one for good', async () => {
  const { db } = service.services
  await db.sql.script('delete from github_pull_request_prompts; delete from github_pull_requests')
  service.clock.set('2026-11-14T14:00:00Z')
  await hook.push({ branch: 'warmer', commits: [change] })
  await hook.merge({ number: 1 })
  await hook.pull('closed', { number: 2, closedAt: '2026-11-14T14:00:00Z' })
  await hook.pull('opened', { number: 3, base: 'develop' })
  const left = async (instant: string) => {
    service.clock.set(instant)
    await pruneGithub(db, service.clock.now())
    const rows = await db.sql<{ number: number; prompts: number }>`
      select number, (select count(*) from github_pull_request_prompts p where p.number = r.number) as prompts
      from github_pull_requests r
      order by number`
    return rows.map(({ number, prompts }) => `#${number} with ${prompts} prompts`)
  }
  const [first, second, third] = ['#1 with 1 prompts', '#2 with 0 prompts', '#3 with 1 prompts'] as const
  expect(await left('2027-11-14T13:00:00Z')).toEqual([first, second, third])
  expect(await left('2027-11-14T13:00:01Z')).toEqual([second, third])
  expect(await left('2037-11-14T13:00:01Z')).toEqual([third])
})
