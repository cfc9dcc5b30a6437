import { expect, test } from 'bun:test'
import { createClient, createSignalBuffer, PromptSignalsError } from '../../clients/typescript/src/index.ts'
import { serveInTest, useNewTenant, useService } from '../use.ts'

const service = useService()
const tenant = useNewTenant(service)

type Fault =
  | 'none'
  | 'lost request'
  | 'lost answer'
  | 'cut answer'
  | 'stalled answer'
  | 'sent twice'
  | 'no answer'
  | 'unavailable'

/** The service behind a network that does this to one request after the other, then nothing. */
function faulty(faults: Iterator<Fault>) {
  const keys: (string | null)[] = []
  const send = async (url: string, init: RequestInit): Promise<Response> => {
    keys.push(new Headers(init.headers).get('idempotency-key'))
    const fault = faults.next().value ?? 'none'
    if (fault === 'lost request') throw new TypeError('the request was lost')
    if (fault === 'unavailable') return new Response('<h1>Bad gateway</h1>', { status: 502 })
    if (fault === 'no answer') {
      await fetch(url, { ...init, signal: null })
      return new Promise((_, reject) => init.signal?.addEventListener('abort', () => reject(new Error('aborted'))))
    }
    if (fault === 'sent twice') await fetch(url, init)
    const response = await fetch(url, { ...init, headers: { ...init.headers } })
    if (fault === 'lost answer') throw new TypeError('the answer was lost')
    if (fault !== 'cut answer' && fault !== 'stalled answer') return response
    const text = await response.text()
    const chunks = [new TextEncoder().encode(text.slice(0, text.length / 2))]
    const half = new ReadableStream({
      pull(controller) {
        const chunk = chunks.shift()
        if (chunk) controller.enqueue(chunk)
        else if (fault === 'cut answer') controller.error(new TypeError('the connection broke'))
        else return new Promise<void>(() => {})
      },
    })
    return new Response(half, response)
  }
  return { fetch: send, keys }
}

const clientWith = (faults: Fault[], options = {}) => {
  const network = faulty(faults.values())
  const client = createClient({ url: service.url, key: tenant.key, fetch: network.fetch, timeoutMs: 2_000, ...options })
  return { client, keys: network.keys }
}

const countRows = async () => (await Array.fromAsync(clientWith([]).client.signals.list(tenant.prompt))).length

test.each<Fault>(['lost request', 'lost answer', 'cut answer', 'sent twice', 'no answer', 'unavailable'])(
  'a signal is recorded once, with one idempotency key, after: %s',
  async (fault) => {
    const { client, keys } = clientWith([fault], { timeoutMs: fault === 'no answer' ? 300 : 5_000 })
    const { id, value } = await client.signals.record(tenant.prompt, 'positive', {
      commit: '45c48cc',
      metadata: { a: 1 },
    })
    expect(new Set(keys).size).toBe(1)
    expect(await Array.fromAsync(client.signals.list(tenant.prompt))).toMatchObject([
      { id, value, metadata: { a: 1, commit_sha: '45c48cc' } },
    ])
  },
)

test('an error has its status, code, request and details, and is not repeated when it would stay', async () => {
  const { client, keys } = clientWith([])
  const error = await client.signals.record(tenant.prompt, 'maybe' as 'positive').catch((error) => error)
  expect(error).toBeInstanceOf(PromptSignalsError)
  expect(error).toMatchObject({ status: 422, code: 'validation_error', requestId: expect.any(String) })
  expect(error.details).toMatchObject([{ path: '/value' }])
  expect(error.message).toBe('The signal is not valid. /value must be positive or negative')
  expect(keys).toHaveLength(1)
})

test('what cannot be sent is an error before anything is sent, and rejects in a buffer', async () => {
  const { client, keys } = clientWith([])
  const metadata: Record<string, unknown> = {}
  metadata.self = metadata
  const errorOf = (sent: Promise<unknown>) => sent.catch(({ name }) => name)
  expect(await errorOf(client.signals.recordMany(tenant.prompt, [{ value: 'positive', metadata }]))).toBe('TypeError')
  expect(await errorOf(clientWith([], { key: 'psk_…' }).client.usage())).toBe('TypeError')
  const buffer = createSignalBuffer({ signals: client.signals, onError: () => {} })
  expect(await errorOf(buffer.record(tenant.prompt, 'positive', { metadata }))).toBe('TypeError')
  expect(keys).toEqual([])
})

test('a redirect is an error, and not followed', async () => {
  const requests: string[] = []
  const moved = serveInTest(({ method, url }) => {
    requests.push(method)
    return method === 'POST' ? Response.redirect(`${url}/moved`, 301) : Response.json({ data: [] })
  })
  const client = createClient({ url: moved, key: tenant.key })
  expect(await client.signals.record(tenant.prompt, 'positive').catch((error) => error)).toMatchObject({ status: 301 })
  expect(requests).toEqual(['POST'])
})

test('a used-up month is not repeated, and says when it ends', async () => {
  const small = await service.createTenant(0)
  const { client, keys } = clientWith([], { key: small.key })
  const error = await client.signals.record(small.prompt, 'positive').catch((error) => error)
  expect(error).toMatchObject({ status: 429, limitedBy: 'organisation_month', resetsAt: expect.any(Date) })
  expect(keys).toHaveLength(1)
})

test('a failure that stays is an error after the last attempt', async () => {
  const { client, keys } = clientWith(['lost request', 'unavailable', 'lost request'], { retries: 1 })
  expect(await client.usage().catch((error) => error)).toMatchObject({ status: 502, code: 'unknown' })
  expect(keys).toHaveLength(2)
})

test('an error of a proxy, in any form, keeps its status and is not repeated', async () => {
  for (const answer of [null, [], { error: null }, { error: 'Forbidden' }, { error: { code: 'x', details: null } }]) {
    let requests = 0
    const refuse = async () => {
      requests += 1
      return Response.json(answer, { status: 403 })
    }
    const client = createClient({ url: service.url, key: tenant.key, fetch: refuse })
    expect(await client.usage().catch((error) => error)).toMatchObject({
      status: 403,
      message: 'The service answered with status 403.',
    })
    expect(requests).toBe(1)
  }
})

test('the signal of the caller ends a request, also between two attempts', async () => {
  const stop = new AbortController()
  const { client } = clientWith(['lost request'])
  const answer = client.usage({ signal: stop.signal })
  stop.abort(new Error('enough'))
  expect(await answer.catch((error) => error.message)).toBe('enough')
})

test('an export goes on where the connection broke', async () => {
  const { client } = clientWith([])
  const values = Array.from({ length: 30 }, () => ({ value: 'positive' as const }))
  const ids = (await client.signals.recordMany(tenant.prompt, values)).map(({ id }) => id)
  const exported = await Array.fromAsync(clientWith(['cut answer', 'cut answer']).client.signals.export(tenant.prompt))
  expect(exported.map(({ id }) => id)).toEqual(ids as number[])
})

test('an export goes on where the connection stalled, and says that it did when nothing comes at all', async () => {
  const { client } = clientWith([])
  const values = Array.from({ length: 30 }, () => ({ value: 'positive' as const }))
  const ids = (await client.signals.recordMany(tenant.prompt, values)).map(({ id }) => id)
  const stalling = () => clientWith(['stalled answer', 'stalled answer'], { timeoutMs: 100 }).client
  const exported = await Array.fromAsync(stalling().signals.export(tenant.prompt))
  expect(exported.map(({ id }) => id)).toEqual(ids as number[])
  const fetch = async () => new Response(new ReadableStream({ pull: () => new Promise(() => {}) }))
  const silent = createClient({ url: service.url, key: tenant.key, fetch, timeoutMs: 10 }).signals.export(tenant.prompt)
  expect(await silent.next().catch((error) => [error.name, error.status, error.code, error.message])).toEqual([
    ...['PromptSignalsError', 0, 'network_error', 'The export was cut off: Nothing came within 60 ms.'],
  ])
})

test('a history is read over all its pages', async () => {
  const commits = Array.from({ length: 101 }, (_, n) => `c0ffee${String(n).padStart(34, '0')}`)
  const user = { name: 'Ada', email: 'ada@example.com' }
  const entries = commits.map((commit_sha) => ({ action: 'deployed', user, commit_sha, branch_name: 'main' }))
  await service.addHistory(tenant.prompt, entries)
  const read = await Array.fromAsync(clientWith([]).client.history.list(tenant.prompt))
  expect(read.map((entry) => entry.commit_sha)).toEqual(commits.reverse())
})

test('a signal is sent as it was given, although the caller changes its object while it waits or is repeated', async () => {
  const metadata = { session: 'a' }
  const { client, keys } = clientWith(['lost answer'])
  const recorded = client.signals.record(tenant.prompt, 'positive', { metadata })
  const buffer = createSignalBuffer({ signals: client.signals })
  for (const session of ['b', 'c']) {
    metadata.session = session
    buffer.record(tenant.prompt, 'positive', { metadata })
  }
  metadata.session = 'd'
  await Promise.all([recorded, buffer.close()])
  expect(keys.filter((key) => key !== null)).toHaveLength(2)
  const listed = await Array.fromAsync(client.signals.list(tenant.prompt))
  expect(listed.map((signal) => signal.metadata?.session).sort()).toEqual(['a', 'b', 'c'])
})

test('a buffer sends numbers as they were given, also those that JavaScript would change', async () => {
  const { client } = clientWith([])
  const buffer = createSignalBuffer({ signals: client.signals })
  buffer.record(tenant.prompt, 'positive', { metadata: { id: JSON.rawJSON('12345678901234567890'), share: 0.1 } })
  await buffer.close()
  const { text } = await service.get(`/prompts/${tenant.prompt}/signals`, tenant.key)
  expect(text).toContain('"metadata":{"id": 12345678901234567890, "share": 0.1}')
})

test('a buffer repeats a batch with the same keys, also where the caller gave no key', async () => {
  const bodies: string[] = []
  const network = faulty(['lost answer', 'lost answer'].values() as Iterator<Fault>)
  const fetch = (url: string, init: RequestInit) => {
    bodies.push(String(init.body))
    return network.fetch(url, init)
  }
  const { signals } = createClient({ url: service.url, key: tenant.key, fetch, retries: 0 })
  const buffer = createSignalBuffer({ signals })
  const none = undefined as unknown as string
  buffer.record(tenant.prompt, 'positive', { idempotencyKey: none })
  await buffer.close()
  expect(bodies).toHaveLength(3)
  expect(new Set(bodies).size).toBe(1)
  expect(await countRows()).toBe(1)
})

test('a full buffer rejects the new signal, keeps the old ones, and does not end a process that does not wait', async () => {
  const refused: string[] = []
  const onError = (error: Error) => refused.push(error.message)
  const { signals } = clientWith([]).client
  const buffer = createSignalBuffer({ signals, capacity: 2, intervalMs: 60_000, onError })
  const kept = [buffer.record(tenant.prompt, 'positive'), buffer.record(tenant.prompt, 'negative')]
  expect(await buffer.record(tenant.prompt, 'positive').catch(String)).toBe(
    'Error: The buffer is full: 2 signals wait.',
  )
  buffer.record(tenant.prompt, 'positive')
  await buffer.close()
  await Promise.all(kept)
  expect(await countRows()).toBe(2)
  expect(await buffer.record(tenant.prompt, 'positive').catch(String)).toBe('Error: The buffer is closed.')
  const full = 'The buffer is full: 2 signals wait.'
  expect(refused).toEqual([full, full, 'The buffer is closed.'])
})

test('a buffer tells of a signal that the service refused, and records the others', async () => {
  const refused: [string, unknown][] = []
  const onError = (error: Error, { metadata }: { metadata?: object }) => refused.push([error.message, metadata])
  const buffer = createSignalBuffer({ signals: clientWith([]).client.signals, onError })
  const wrong = buffer.record(tenant.prompt, 'maybe' as 'positive', { metadata: { n: 1 } })
  buffer.record(tenant.prompt, 'positive')
  await buffer.close()
  expect(refused).toEqual([['The signal is not valid. /value must be positive or negative', { n: 1 }]])
  expect(await wrong.catch((error) => error)).toMatchObject({ status: 422 })
  expect(await countRows()).toBe(1)
})

test.each([
  ['an error', new Error('the process ends')],
  ['a string', 'the process ends'],
])('closing a buffer ends when its signal aborts with %s, and rejects what was not recorded', async (_, reason) => {
  const { signals } = createClient({ url: 'http://127.0.0.1:9', key: tenant.key, retries: 0 })
  const errors: Error[] = []
  const buffer = createSignalBuffer({ signals, onError: (error) => errors.push(error) })
  buffer.record(tenant.prompt, 'positive').catch(() => {})
  const stop = new AbortController()
  const closed = buffer.close(stop.signal)
  stop.abort(reason)
  expect(await closed.catch((error) => error)).toBe(reason)
  expect(errors.map(({ message }) => message)).toEqual(['the process ends'])
})
