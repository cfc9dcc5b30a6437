// What both clients promise, and what each promises in its own way.
import { describe, expect, test } from 'bun:test'
import { assign } from '../../clients/typescript/src/assign.ts'
import { scopes } from '../../src/lib/scopes.ts'
import { entry } from '../service.ts'
import { serveInTest, useNewTenant, useService } from '../use.ts'
import { clients, createNetwork, type Fault, type Given, python } from './network.ts'

const service = useService()
const tenant = useNewTenant(service)

/** What a client is given to reach the service over this network, and what the network saw. */
async function over(faults: Fault[], more: Partial<Given> = {}) {
  const network = await createNetwork(service.url, faults.values())
  return { given: { key: tenant.key, ...more, url: network.url }, network }
}

const direct = (): Given => ({ url: service.url, key: tenant.key })
const ids = (rows: { id: number }[]): number[] => rows.map(({ id }) => id)

describe.each(clients)('the client for %s', (_, call) => {
  test.each<Fault>(['lost request', 'lost answer', 'cut answer', 'sent twice', 'no answer', 'unavailable'])(
    'records a signal once, with one idempotency key, after: %s',
    async (fault) => {
      const { given, network } = await over([fault], { timeout: fault === 'no answer' ? 0.5 : 5 })
      const { id, value } = await call(given, 'record', tenant.prompt, 'positive', { a: 1 }, '45c48cc')
      expect(network.keys()).toEqual(network.keys().fill(expect.stringMatching(/^[0-9a-f]{32}$/)))
      expect(new Set(network.keys()).size).toBe(1)
      const metadata = { a: 1, commit_sha: '45c48cc' }
      expect(await call(direct(), 'signals', tenant.prompt)).toMatchObject([{ id, value, metadata }])
    },
  )

  test('gives each signal of a batch a key, so that one whose answer was lost is recorded once', async () => {
    const { given, network } = await over(['lost answer'])
    const signals = [{ value: 'positive', idempotency_key: null }, { value: 'negative' }]
    const results = await call(given, 'record_many', tenant.prompt, signals)
    const bodies = network.requests.map((request) => request.split('\r\n\r\n')[1])
    expect(bodies).toEqual([expect.stringMatching(/"idempotency_key": ?"[0-9a-f]{32}"/), bodies[0]])
    expect(ids(await call(direct(), 'signals', tenant.prompt)).reverse()).toEqual(ids(results))
  })

  test('records one signal for a subject, which can be changed and withdrawn, also when answers are lost', async () => {
    const { given } = await over(['lost answer', 'none', 'lost answer', 'none', 'lost answer', 'none', 'lost answer'])
    const vote = (value: string) => call(given, 'record', tenant.prompt, value, { value }, null, null, 'msg_1')
    const { id } = await vote('positive')
    expect(await vote('negative')).toMatchObject({ id, value: 'negative', replaced: true })
    const changed = { value: 'positive', subject: 'msg_1' }
    expect(await call(given, 'record_many', tenant.prompt, [changed])).toMatchObject([{ status: 200, id }])
    expect(await call(direct(), 'signals', tenant.prompt)).toMatchObject([{ ...changed, id, metadata: null }])
    // The first attempt has withdrawn it.
    expect(await call(given, 'withdraw', tenant.prompt, 'msg_1')).toBe(false)
    expect(await call(direct(), 'signals', tenant.prompt)).toEqual([])
    await vote('negative')
    expect(await call(given, 'withdraw', tenant.prompt, 'msg_1')).toBe(true)
    expect(await call(given, 'withdraw', tenant.prompt, '')).toMatchObject({
      status: 422,
      details: [{ path: 'subject' }],
    })
  })

  test('sends what it creates or rotates once: a lost answer is an error, not a second key', async () => {
    const { key, id } = await service.createKey(tenant, [...scopes])
    const { given, network } = await over(['lost answer', 'lost answer', 'lost answer'], { key })
    const lost = { status: 0, code: 'network_error' }
    expect(await call(given, 'create_key', { name: 'lost' })).toMatchObject(lost)
    expect(await call(given, 'create_prompt', { name: 'lost' })).toMatchObject(lost)
    expect(await call(given, 'rotate_key', id)).toMatchObject(lost)
    expect(network.requests).toHaveLength(3)
  })

  test('tells status, code, request and details of an error that would stay, and does not repeat it', async () => {
    const { given, network } = await over([])
    expect(await call(given, 'record', tenant.prompt, 'maybe')).toMatchObject({
      status: 422,
      code: 'validation_error',
      request_id: expect.any(String),
      details: [{ path: '/value' }],
      message: 'The signal is not valid. /value must be positive or negative',
    })
    expect(network.requests).toHaveLength(1)
  })

  test('does not repeat a signal for a used-up month, and says when it ends', async () => {
    const small = await service.createTenant(0)
    const { given, network } = await over([], { key: small.key })
    const refused = { status: 429, limited_by: 'organisation_month', resets_at: expect.stringMatching(/^\d{4}-/) }
    expect(await call(given, 'record', small.prompt, 'positive')).toMatchObject(refused)
    expect(network.requests).toHaveLength(1)
  })

  test('gives up a failure that stays after the last attempt', async () => {
    const { given, network } = await over(['lost request', 'unavailable', 'lost request'], { retries: 1 })
    expect(await call(given, 'usage')).toMatchObject({ status: 502, code: 'unknown' })
    expect(network.requests).toHaveLength(2)
  })

  test('does not follow a redirect', async () => {
    const requests: string[] = []
    const url = serveInTest(({ method, url }) => {
      requests.push(method)
      return method === 'POST' ? Response.redirect(`${url}/moved`, 301) : Response.json({ data: [] })
    })
    expect(await call({ ...direct(), url }, 'record', tenant.prompt, 'positive')).toMatchObject({ status: 301 })
    expect(requests).toEqual(['POST'])
  })

  test('keeps the status of an error of a proxy, in any form, and does not repeat it', async () => {
    const answers = [null, [], { error: null }, { error: 'Forbidden' }, { error: { code: 'x', details: null } }]
    let requests = 0
    const url = serveInTest(() => Response.json(answers[requests++], { status: 403 }))
    for (const _ of answers) {
      const message = 'The service answered with status 403.'
      expect(await call({ ...direct(), url }, 'usage')).toMatchObject({ status: 403, message })
    }
    expect(requests).toBe(answers.length)
  })

  test.each<[Fault, number]>([
    ['cut answer', 2],
    ['stalled answer', 2],
    ['slow answer', 0],
  ])('exports every signal once after: %s', async (fault, resumed) => {
    const values = Array.from({ length: 30 }, () => ({ value: 'positive' }))
    const recorded = await call(direct(), 'record_many', tenant.prompt, values)
    const { given, network } = await over([fault, fault], { timeout: 0.25 })
    expect(ids(await call(given, 'export', tenant.prompt))).toEqual(ids(recorded))
    expect(network.requests.filter((request) => request.includes('after='))).toHaveLength(resumed)
  })

  test('exports what was recorded after a signal', async () => {
    const values = Array.from({ length: 3 }, () => ({ value: 'positive' }))
    const [first, ...later] = ids(await call(direct(), 'record_many', tenant.prompt, values))
    expect(ids(await call(direct(), 'export', tenant.prompt, { after: first }))).toEqual(later)
  })

  test('says that an export was cut off when nothing comes at all', async () => {
    const url = serveInTest(() => new Response(new ReadableStream({ pull: () => new Promise(() => {}) })))
    const given = { ...direct(), url, timeout: 0.05, retries: 0 }
    expect(await call(given, 'export', tenant.prompt)).toMatchObject({ status: 0 })
  })

  test('reads a history over all its pages', async () => {
    const commits = Array.from({ length: 101 }, (_, n) => `c0ffee${String(n).padStart(34, '0')}`)
    const entries = commits.map((commit_sha) => entry({ commit_sha }))
    await service.addHistory(tenant.prompt, entries)
    const read: { commit_sha: string }[] = await call(direct(), 'history', tenant.prompt)
    expect(read.map(({ commit_sha }) => commit_sha)).toEqual(commits.reverse())
  })

  test('lists an entry of a history once, also when hundreds are recorded meanwhile', async () => {
    const url = serveInTest((request) => {
      const page = Number(new URL(request.url).searchParams.get('page'))
      const newest = page === 1 ? 300 : 450
      const all = Array.from({ length: newest }, (_, n) => ({ id: newest - n }))
      const pagination = { total_pages: Math.ceil(newest / 100) }
      return Response.json({ data: all.slice(100 * (page - 1), 100 * page), pagination })
    })
    const listed = ids(await call({ ...direct(), url }, 'history', tenant.prompt))
    const expected = Array.from({ length: 300 }, (_, n) => n + 1)
    expect(listed.filter((id) => id <= 300).sort((a, b) => a - b)).toEqual(expected)
  })
})

test('what Python cannot send is an error before anything is sent', async () => {
  const unsent = `
import decimal
def message_of(send):
  try:
    send()
  except (TypeError, ValueError) as error:
    return str(error)
show([
  message_of(lambda: client.record("pmt_1", "positive", {"price": decimal.Decimal(1)})),
  message_of(lambda: Client(given["url"], "psk_…").usage()),
  message_of(lambda: Client(given["url"], "psk_x\\n").usage()),
  message_of(lambda: client.record_many("pmt_1", [{"value": "positive", "createdAt": "2026-11-01"}])),
  message_of(lambda: list(client.signals("pmt_1", limit=5))),
  message_of(lambda: list(client.history("pmt_1", page=2))),
])`
  expect(await python(unsent, { ...direct(), url: 'http://127.0.0.1:9' })).toEqual([
    'A Decimal cannot be sent: use text, numbers, booleans, None, lists and dicts.',
    expect.stringContaining("can't encode"),
    expect.stringContaining('Invalid header value'),
    'A signal has no createdAt.',
    expect.stringContaining("'limit'"),
    expect.stringContaining("'page'"),
  ])
})

test('times, booleans and lists of Python are written as the service reads them', async () => {
  const counted = `
import datetime
prompt = "${tenant.prompt}"
now = datetime.datetime.now(datetime.timezone.utc)
client.record_many(prompt, [{"value": "positive", "created_at": now}])
show([
  client.stats(prompt, until=now + datetime.timedelta(days=1), since=now)["totals"]["total"],
  [one["archived"] for one in client.prompts(archived=False)],
  list(client.history(prompt, action=["pr_opened", "pr_closed"])),
])`
  expect(await python(counted, direct())).toEqual([1, [false], []])
})

test('sessions are assigned in Python as by the package for TypeScript', async () => {
  const names = Array.from({ length: 200 }, (_, n) => `séance ${n}`)
  const experiment = { base: 'a'.repeat(40), head: 'b'.repeat(40), share: 0.3 }
  const lines = 'show([assign(f"séance {n}", "a" * 40, "b" * 40, 0.3) for n in range(200)])'
  expect(await python(lines, direct())).toEqual(names.map((name) => assign(name, experiment)))
})
