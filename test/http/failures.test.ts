import { expect, test } from 'bun:test'
import { StoppedError } from '../../src/db/errors.ts'
import { unavailable } from '../../src/errors.ts'
import { createRouteWrapper } from '../../src/http/middleware.ts'
import { createClient } from '../client.ts'
import { startStopwatch } from '../program.ts'
import { serve, type TestService } from '../service.ts'
import { useOwnService, useTenant } from '../use.ts'

const service = useOwnService()
const tenant = useTenant(service)

async function callBroken(broken: Partial<TestService['services']>) {
  const listener = serve({ ...service.services, ...broken })
  try {
    // It reads the whole document of the interface, which is no part of the request.
    const client = await createClient(listener.url)
    const stop = startStopwatch()
    const answer = await client.postSignal(tenant.prompt, tenant.key)
    return { ...answer, ms: stop() }
  } finally {
    await listener.stop()
  }
}

test.each([
  ['an error', new Error('select secret from api_keys')],
  ['a string', 'select secret from api_keys'],
  ['an object', { sql: 'select secret from api_keys' }],
  ['nothing', undefined],
  ['an error with a status', Object.assign(new Error('secret'), { status: 418 })],
])('a crash with %s is an internal error in the envelope that reveals nothing of it', async (_, thrown) => {
  const { status, headers, text, body } = await callBroken({
    findPrompt: () => {
      throw thrown
    },
  })
  expect([status, body.error.code]).toEqual([500, 'internal_error'])
  expect(text).not.toMatch(/secret|select/)
  expect(headers.get('retry-after')).toBe('1')
})

test('a part that never answers ends in a 503 within five seconds', async () => {
  const { status, body, ms } = await callBroken({ findPrompt: () => new Promise(() => {}) })
  expect([status, body.error.code]).toEqual([503, 'unavailable'])
  expect(ms).toBeLessThan(5_000)
})

const withCode = (code: string, name = 'Error') => Object.assign(new Error('secret'), { name, code })
const metric = /^prompt_signals_requests_unavailable_total\{reason="(\w+)"\} (\d+)$/gm

/** Requests that were not served so far, by reason. */
async function countUnavailable(): Promise<Record<string, number>> {
  const text = service.services.metrics.text()
  return Object.fromEntries([...text.matchAll(metric)].map(([, reason, count]) => [reason, Number(count)]))
}

test.each([
  ['a full disk', withCode('53100', 'PostgresError'), 'database'],
  ['too many connections', withCode('53300', 'PostgresError'), 'database'],
  ['a read-only database', withCode('25006', 'PostgresError'), 'database'],
  ['a refused connection', withCode('ECONNREFUSED'), 'database'],
  ['a lost connection', withCode('CONNECTION_CLOSED'), 'database'],
  ['an expired certificate', withCode('CERT_HAS_EXPIRED'), 'database'],
  ['a stopped engine', new StoppedError('secret'), 'database'],
  ['a statement timeout', withCode('57014', 'PostgresError'), 'timeout'],
  ['a lock timeout', withCode('55P03', 'PostgresError'), 'timeout'],
  ['a deadlock', withCode('40P01', 'PostgresError'), 'timeout'],
  ['a full queue', unavailable('overload'), 'overload'],
  ['a missing table', withCode('42P01', 'PostgresError'), null],
  ['a broken rule', withCode('23514', 'PostgresError'), null],
  ['a missing file', withCode('ENOENT'), null],
])('%s is a 503 that is counted by its reason, unless it was not foreseen', async (_, thrown, reason) => {
  const before = await countUnavailable()
  const { status, text, headers } = await callBroken({ findPrompt: () => Promise.reject(thrown) })
  expect([status, headers.get('retry-after')]).toEqual([reason ? 503 : 500, '1'])
  expect(text).not.toContain('secret')
  const counted = reason ? { ...before, [reason]: (before[reason] ?? Number.NaN) + 1 } : before
  expect(await countUnavailable()).toEqual(counted)
})

test.each([
  ['GET', [1, 2, 3]],
  ['POST', [1]],
])('%s is handled again while connections to the database are lost: %p', async (method, expected) => {
  let lost = 0
  const calls: number[] = []
  const wrapper = createRouteWrapper({ ...service.services, lostConnections: () => lost })
  const route = wrapper.authenticated(null, async () => {
    calls.push(calls.length + 1)
    if (calls.length < 3) lost += 1
    return Response.json(calls.length)
  })
  const headers = { authorization: `Bearer ${tenant.key}` }
  const response = await route({
    request: new Request('http://localhost/', { method, headers }),
    params: {},
    route: '/',
  })
  expect([await response.json(), calls]).toEqual([expected.at(-1), expected])
})
