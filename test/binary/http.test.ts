import { afterAll, expect, test } from 'bun:test'
import { headersOf } from '../github/hook.ts'
import { push, sha } from '../github/payloads.ts'
import { redisPrefix, redisUrl } from '../harness.ts'
import { eventually } from '../program.ts'
import { exchange, formatRequest } from '../socket.ts'
import { useProgram } from '../use.ts'

const { client, operator, server, tenant } = useProgram(() => ({ REDIS_URL: redisUrl(), REDIS_PREFIX: redisPrefix() }))

afterAll(() => expect(server.stderr()).toBe(''))

test('says that it is alive, and ready with its database and Redis', async () => {
  const { status, body } = await client.call('GET', '/livez')
  expect([status, body]).toEqual([200, { status: 'alive' }])
  // On a busy machine Redis may answer the first commands too late, and be down for a moment.
  await eventually(async () => (await client.call('GET', '/readyz')).body, { ready: true, database: 'up', redis: 'up' })
})

test('HEAD is answered like GET, without a body', async () => {
  const named = ({ headers }: { headers: Headers }) => [...headers.keys()].filter((name) => name !== 'date').sort()
  const history = `/api/v1/prompts/${tenant.prompt}/history`
  for (const path of [history, '/docs', '/docs/json', '/livez', '/readyz', '/nothing']) {
    const options = { key: tenant.key, headers: { 'accept-encoding': 'identity' } }
    const get = await client.call('GET', path, options)
    const head = await client.call('HEAD', path, options)
    expect([path, head.status, named(head), head.text]).toEqual([path, get.status, named(get), ''])
    expect(head.headers.get('content-length')).toBe(`${Buffer.byteLength(get.text)}`)
  }
})

test('webhooks github set shows a secret once, with which the binary takes deliveries', async () => {
  const { prompt, key, org } = tenant
  const replaced = await operator.one('webhooks', 'github', 'set', '--org', org)
  const webhook = await operator.one('webhooks', 'github', 'set', '--org', org)
  expect(webhook).toEqual({ org, path: `/webhooks/github/${org}`, secret: expect.stringMatching(/^[0-9A-Za-z]{43}$/) })
  expect(webhook.secret).not.toBe(replaced.secret)
  await operator.one('prompts', 'link', prompt, '--repository', 'acme/prompts', '--path', 'prompts/binary.md')

  const body = JSON.stringify(push({ after: sha('binary'), commits: [{ added: ['prompts/binary.md'] }] }))
  const deliver = async (secret: string) => {
    const headers = await headersOf('push', body, { secret })
    return (await client.call('POST', webhook.path, { body, headers })).status
  }
  expect(await deliver(replaced.secret)).toBe(401)
  expect(await deliver(webhook.secret)).toBe(200)
  const { data } = (await client.getHistory(prompt, key)).body
  expect(data).toMatchObject([{ action: 'deployed', commit_sha: sha('binary') }])
  expect(server.stdout() + server.stderr()).not.toContain(webhook.secret)
})

test('the body of a delivery is waited for only where there is a webhook', async () => {
  const headers = ['Content-Length: 26000000', `X-Hub-Signature-256: sha256=${'0'.repeat(64)}`]
  const answer = await exchange(server.url, formatRequest('POST', '/webhooks/github/org_nobody', headers, '{'))
  expect(answer).toStartWith('HTTP/1.1 401 ')
})
