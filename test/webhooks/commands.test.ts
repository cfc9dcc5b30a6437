import { beforeAll, expect, test } from 'bun:test'
import { useProgram } from '../use.ts'

const { operator } = useProgram()
const url = 'https://example.com/hook'
const secret = expect.stringMatching(/^whsec_/)
let org: string

beforeAll(async () => {
  ;({ id: org } = await operator.one('orgs', 'create', '--name', 'Hooks', '--plan', 'team'))
})

const create = (...more: string[]) => operator.one('endpoints', 'create', '--org', org, '--url', url, ...more)

test('endpoints are created, shown, changed, rotated and removed; the secret is shown by two commands only', async () => {
  const { id: prompt } = await operator.one('prompts', 'create', '--org', org, '--name', 'greeting')
  const { secret: first, ...made } = await create('--events', 'change.live, impact.decided', '--prompt', 'greeting')
  const given = { kind: 'webhook', url, events: ['change.live', 'impact.decided'], prompts: [prompt], enabled: true }
  expect(made).toMatchObject(given)
  expect([made.id, first]).toEqual([expect.stringMatching(/^whe_/), secret])
  expect(await operator.one('endpoints', 'show', made.id)).toEqual(made)
  expect(await operator.json('endpoints', 'list', '--org', org)).toEqual([made])
  const slack = ['--url', 'https://hooks.slack.com/services/XXXX', '--kind', 'slack', '--events', 'all']
  const changed = await operator.one('endpoints', 'update', made.id, ...slack, '--prompt', 'all', '--enabled', 'false')
  expect(changed).toMatchObject({ kind: 'slack', url: 'https://hooks.slack.com/…', events: null, prompts: null })
  expect(changed).toMatchObject({ enabled: false, disabled_reason: 'requested' })
  const table = await operator.plain('endpoints', 'list', '--org', org)
  expect(table).toMatch(
    /slack +https:\/\/hooks\.slack\.com\/… +all +all +disabled \d{4}-\d\d-\d\d \d\d:\d\d: requested\n$/,
  )
  const rotated = await operator.one('endpoints', 'rotate', made.id, '--overlap', '0s')
  expect(rotated).toEqual({ ...changed, secret })
  expect(rotated.secret).not.toBe(first)
  expect(await operator.one('endpoints', 'remove', made.id)).toEqual({ id: made.id })
  expect(await operator.json('endpoints', 'list', '--org', org)).toEqual([])
})

test('what is wrong with an endpoint is said by option', async () => {
  const { id } = await create()
  const wrong = 'The endpoint is not valid. --url must have no fragment'
  expect(await operator.errorLine('endpoints', 'update', id, '--url', `${url}#a`)).toBe(wrong)
  expect(await operator.errorLine('endpoints', 'redeliver', id, 'msg_none')).toBe(
    'There is no delivery msg_none of this endpoint.',
  )
  expect(await operator.json('endpoints', 'deliveries', id)).toEqual([])
  expect(await operator.errorLine('endpoints', 'show', 'whe_none')).toBe('There is no endpoint whe_none.')
})
