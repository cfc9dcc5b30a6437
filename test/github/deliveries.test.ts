import { expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { sign } from '@octokit/webhooks-methods'
import { pruneDeliveries } from '../../src/github/prune.ts'
import { setWebhook } from '../../src/github/webhook.ts'
import type { Answer } from '../client.ts'
import { useOwnService } from '../use.ts'
import { createHook, headersOf, hookEachTest, paths, type Sending } from './hook.ts'
import { merged, ping, pullRequest, push } from './payloads.ts'

const { service, hook } = hookEachTest(useOwnService())

const change = () => push({ commits: [{ modified: [paths.greeting] }] })
const mebibyte = 1024 * 1024

/** All of an answer but what differs between any two. */
const shapeOf = ({ status, headers, text }: Answer) => [
  status,
  [...headers.keys()].sort(),
  headers.get('www-authenticate'),
  text.replace(/"request_id":"[^"]+"/, ''),
]

/** The one rejection, whatever the reason. */
const rejection = async () => shapeOf(await hook.deliver('push', change(), { secret: 'wrong' }))

const problemOf = ({ status, body }: Answer) => [status, body.error.code, body.error.details[0].message]

test('a wrong secret is rejected as unauthorized, and nothing is recorded', async () => {
  const { status, headers, body } = await hook.deliver('push', change(), { secret: 'wrong' })
  expect(status).toBe(401)
  const request_id = headers.get('x-request-id')
  expect(body).toEqual({ error: { code: 'unauthorized', message: expect.any(String), request_id } })
  expect(await hook.history('greeting')).toEqual([])
})

test.each([
  ['no signature', async () => ''],
  ['garbage', async () => 'garbage'],
  ['a SHA-1 digest', async () => `sha1=${'0'.repeat(40)}`],
  ['an empty digest', async () => 'sha256='],
  ['a truncated digest', async (body: string) => (await sign(hook.secret, body)).slice(0, -1)],
  ['a digest in upper case', async (body: string) => (await sign(hook.secret, body)).toUpperCase()],
  ['the signature of another body', async (body: string) => sign(hook.secret, `${body} `)],
])('%s is rejected like a wrong secret', async (_, signature) => {
  const payload = change()
  const headers = { 'x-hub-signature-256': await signature(JSON.stringify(payload)) }
  expect(shapeOf(await hook.deliver('push', payload, { headers }))).toEqual(await rejection())
})

test('the secret of another organisation is rejected, and so is one that was replaced', async () => {
  const other = await createHook(service)
  expect(shapeOf(await hook.deliver('push', change(), { secret: other.secret }))).toEqual(await rejection())
  const { secret } = await setWebhook(service.services.db, service.clock, hook.tenant.org)
  expect(shapeOf(await hook.deliver('push', change()))).toEqual(await rejection())
  expect(await hook.send('push', change(), { secret })).toBe(1)
})

test('unknown organisations, malformed ones and those without a webhook are rejected alike', async () => {
  const { org } = await service.createTenant()
  const body = JSON.stringify(change())
  for (const name of [org, 'org_none', 'none', 'org_%00', 'org_a%27b', `org_${'x'.repeat(200)}`]) {
    const headers = await headersOf('push', body, { secret: hook.secret })
    const answer = await service.call('POST', `/webhooks/github/${name}`, { body, headers })
    expect([name, shapeOf(answer)]).toEqual([name, await rejection()])
  }
})

test.each([
  ['of no text', () => new Uint8Array([0xff, 0xfe])],
  ['that is empty', () => new Uint8Array()],
])('a body %s is rejected', async (_, bytes) => {
  const headers = { ...(await headersOf('push', 'x', { secret: hook.secret })) }
  const answer = await service.call('POST', `/webhooks/github/${hook.tenant.org}`, { body: bytes(), headers })
  expect(shapeOf(answer)).toEqual(await rejection())
})

test('the signature is over the exact bytes, a byte order mark among them', async () => {
  const body = `\ufeff${JSON.stringify(change())}`
  expect(await hook.send('push', {}, { body })).toBe(1)
})

test.each([
  ['ping', ping, 'Ping received: the webhook works.'],
  ['issues', { action: 'opened' }, 'This event does not change a history.'],
  ['organization', { action: 'renamed' }, 'This event does not change a history.'],
  ['', {}, 'This event does not change a history.'],
])('the event %p is acknowledged and ignored', async (event, payload, message) => {
  const { status, body } = await hook.deliver(event, payload)
  expect(status).toBe(200)
  expect(body).toEqual({ data: { recorded: 0, outcome: 'ignored', message } })
})

test.each([
  ['broken JSON', { body: '{"ref":' }, 'must be JSON'],
  [
    'a form without a payload',
    { body: 'a=b', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
    'must be JSON',
  ],
  [
    'another content type',
    { headers: { 'content-type': 'text/plain' } },
    'must be sent with "Content-Type: application/json"',
  ],
  ['no id', { headers: { 'x-github-delivery': '' } }, 'must have 1 to 255 printable ASCII characters'],
  ['too long an id', { delivery: 'x'.repeat(256) }, 'must have 1 to 255 printable ASCII characters'],
] as [string, Sending, string][])('a signed delivery with %s is invalid', async (_, sending, message) => {
  expect(problemOf(await hook.deliver('push', change(), sending))).toEqual([422, 'validation_error', message])
})

test.each([
  ['push', [], ''],
  ['push', { ...change(), commits: [{}] }, '/commits/0/author'],
  ['push', { ...change(), repository: null }, '/repository'],
  ['pull_request', { action: 'opened' }, '/pull_request'],
  ['pull_request', { ...pullRequest('opened'), repository: {} }, '/repository/id'],
  ['push', push({ repository: 'Acme/Pro\0mpts' }), '/repository/full_name'],
  [
    'pull_request',
    pullRequest('opened', { repository: 'Acme/\nPrompts', headRepository: null }),
    '/repository/full_name',
  ],
  ['push', { ...change(), repository: { ...change().repository, id: 0 } }, '/repository/id'],
  ['repository', { action: 'renamed' }, '/repository'],
])('a %s of the wrong shape is invalid: %#', async (event, payload, path) => {
  const { status, body } = await hook.deliver(event, payload)
  expect([status, body.error.details[0].path]).toEqual([422, path])
})

test('a form is accepted as well, as GitHub sends it by default', async () => {
  const body = new URLSearchParams({ payload: JSON.stringify(change()) }).toString()
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  expect(await hook.send('push', {}, { body, headers })).toBe(1)
})

test('up to 25 MiB are accepted, and one byte more is invalid', async () => {
  const json = JSON.stringify(change())
  const body = json + ' '.repeat(25 * mebibyte - json.length)
  expect(await hook.send('push', {}, { body })).toBe(1)
  expect(problemOf(await hook.deliver('push', {}, { body: `${body} ` }))).toEqual([
    422,
    'validation_error',
    'must be at most 25 MiB',
  ])
})

test('what cannot be a signature is rejected before the body is read, however large', async () => {
  const headers = { 'x-hub-signature-256': 'sha256=0' }
  expect(shapeOf(await hook.deliver('push', {}, { body: 'x'.repeat(26 * mebibyte), headers }))).toEqual(
    await rejection(),
  )
})

test('a delivery that is sent again does nothing, whatever happened since', async () => {
  const delivery = randomUUID()
  const opening = pullRequest('opened', { head: 'main' })
  await hook.send('push', change())
  expect(await hook.send('pull_request', opening, { delivery })).toBe(1)
  await hook.send('pull_request', pullRequest('closed', { head: 'main', closedAt: '2026-11-14T14:00:00Z' }))
  const before = await hook.history('greeting')
  expect(await hook.send('pull_request', { ...opening, action: 'reopened' }, { delivery })).toBe(0)
  await hook.send('push', push({ commits: [{ modified: [paths.farewell] }] }))
  expect(await hook.history('greeting')).toEqual(before)
  expect((await hook.history('farewell')).map(({ action }) => action)).toEqual(['deployed'])
})

test('ten concurrent copies of one delivery are recorded once', async () => {
  const delivery = randomUUID()
  const counts = await Promise.all(
    Array.from({ length: 10 }, (_, index) => hook.send('push', { ...change(), after: `commit${index}` }, { delivery })),
  )
  expect(counts.sort()).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
  expect(await hook.history('greeting')).toHaveLength(1)
})

test('the same id from two organisations is two deliveries', async () => {
  const other = await createHook(service)
  const delivery = randomUUID()
  expect(await hook.send('push', change(), { delivery })).toBe(1)
  expect(await other.send('push', change(), { delivery })).toBe(1)
})

test('a delivery that fails half way leaves nothing, and can be sent again', async () => {
  const { sql } = service.services.db
  const delivery = randomUUID()
  const payload = push({ branch: 'warmer', commits: [{ modified: [paths.greeting] }] })
  await hook.send('pull_request', pullRequest('opened'))
  await sql.script(`alter table history_entries add constraint broken check (branch_name <> 'warmer') not valid`)
  expect((await hook.deliver('push', payload, { delivery })).status).toBe(500)
  await sql.script('alter table history_entries drop constraint broken')
  expect(await hook.send('push', payload, { delivery })).toBe(1)
})

test('a delivery that found no linked prompt can be sent again once there is one', async () => {
  const { sql } = service.services.db
  const delivery = randomUUID()
  await sql`update prompts set path = 'elsewhere' where public_id = ${hook.prompts.greeting}`
  const payload = change()
  expect(await hook.send('push', payload, { delivery })).toBe(0)
  await sql`update prompts set path = ${paths.greeting} where public_id = ${hook.prompts.greeting}`
  expect(await hook.send('push', payload, { delivery })).toBe(1)
})

test('deliveries are remembered for a week, and pushes for a year', async () => {
  const { db } = service.services
  service.clock.set('2026-11-14T12:00:00Z')
  await db.sql`delete from github_affected_prompts`
  await hook.send('push', push({ branch: 'warmer', commits: [{ modified: [paths.greeting] }] }))
  const left = async (instant: string) => {
    service.clock.set(instant)
    await pruneDeliveries(db, service.clock)
    const [counts] = await db.sql`
      select
        (select count(*) from github_deliveries d join organisations o on o.id = d.organisation_id
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
  service.clock.set('2026-11-14T12:00:00Z')
  await hook.send('push', push({ branch: 'warmer', commits: [{ modified: [paths.greeting] }] }))
  await hook.send('pull_request', merged({ number: 1 }))
  await hook.send('pull_request', pullRequest('closed', { number: 2, closedAt: '2026-11-14T14:00:00Z' }))
  await hook.send('pull_request', pullRequest('opened', { number: 3, base: 'develop' }))
  const left = async (instant: string) => {
    service.clock.set(instant)
    await pruneDeliveries(db, service.clock)
    const rows = await db.sql<{ number: number; prompts: number }>`
      select number, (select count(*) from github_pull_request_prompts p where p.number = r.number) as prompts
      from github_pull_requests r
      order by number`
    return rows.map(({ number, prompts }) => [number, prompts])
  }
  expect(await left('2027-11-14T13:00:00Z')).toEqual([
    [1, 1],
    [2, 0],
    [3, 1],
  ])
  expect(await left('2027-11-14T13:00:01Z')).toEqual([
    [2, 0],
    [3, 1],
  ])
  expect(await left('2037-11-14T13:00:01Z')).toEqual([[3, 1]])
})
