// What only the package for TypeScript has: buffers, and requests that the caller can abort.
import { expect, test } from 'bun:test'
import { createClient, createSignalBuffer } from '../../clients/typescript/src/index.ts'
import type { Signals } from '../../clients/typescript/src/signals.ts'
import { useNewTenant, useService } from '../use.ts'
import { createNetwork, type Fault } from './network.ts'

const service = useService()
const tenant = useNewTenant(service)

async function clientWith(faults: Fault[], options = {}) {
  const network = await createNetwork(service.url, faults.values())
  return { client: createClient({ url: network.url, key: tenant.key, ...options }), network }
}

const direct = () => createClient({ url: service.url, key: tenant.key })
const listSignals = () => Array.fromAsync(direct().signals.list(tenant.prompt))

test('what cannot be sent is an error before anything is sent, and rejects in a buffer', async () => {
  const { client, network } = await clientWith([])
  const metadata: Record<string, unknown> = {}
  metadata.self = metadata
  const errorOf = (sent: Promise<unknown>) => sent.catch(({ name }) => name)
  expect(await errorOf(client.signals.recordMany(tenant.prompt, [{ value: 'positive', metadata }]))).toBe('TypeError')
  expect(await errorOf(createClient({ url: network.url, key: 'psk_…' }).usage())).toBe('TypeError')
  const buffer = createSignalBuffer({ signals: client.signals, onError: () => {} })
  expect(await errorOf(buffer.record(tenant.prompt, 'positive', { metadata }))).toBe('TypeError')
  // As REST spells it.
  const misspelled = { created_at: '2026-11-01T00:00:00Z' }
  for (const sent of [
    client.signals.record(tenant.prompt, 'positive', misspelled as object),
    client.signals.recordMany(tenant.prompt, [{ value: 'positive', ...misspelled }]),
    buffer.record(tenant.prompt, 'positive', misspelled as object),
  ]) {
    const message = 'TypeError: A signal has no created_at. Names are written like createdAt.'
    expect(await sent.catch(String)).toBe(message)
  }
  expect(network.requests).toEqual([])
})

test('the signal of the caller ends a request, also between two attempts', async () => {
  const stop = new AbortController()
  const { client } = await clientWith(['lost request'])
  const answer = client.usage({ signal: stop.signal })
  stop.abort(new Error('enough'))
  expect(await answer.catch((error) => error.message)).toBe('enough')
})

test('a signal is sent as it was given, although the caller changes its object while it waits or is repeated', async () => {
  const metadata = { session: 'a' }
  const { client, network } = await clientWith(['lost answer'])
  const recorded = client.signals.record(tenant.prompt, 'positive', { metadata })
  const buffer = createSignalBuffer({ signals: client.signals })
  for (const session of ['b', 'c']) {
    metadata.session = session
    buffer.record(tenant.prompt, 'positive', { metadata })
  }
  metadata.session = 'd'
  await Promise.all([recorded, buffer.close()])
  expect(network.keys().filter((key) => key !== undefined)).toHaveLength(2)
  const sessions = (await listSignals()).map(({ metadata }) => metadata?.session)
  expect(sessions.sort()).toEqual(['a', 'b', 'c'])
})

test('a buffer sends numbers as they were given, also those that JavaScript would change', async () => {
  const buffer = createSignalBuffer({ signals: direct().signals })
  buffer.record(tenant.prompt, 'positive', { metadata: { id: JSON.rawJSON('12345678901234567890'), share: 0.1 } })
  await buffer.close()
  const { text } = await service.get(`/prompts/${tenant.prompt}/signals`, tenant.key)
  expect(text).toContain('"metadata":{"id": 12345678901234567890, "share": 0.1}')
})

test('a buffer repeats a batch with the same keys, also where the caller gave no key', async () => {
  const { client, network } = await clientWith(['lost answer', 'lost answer'], { retries: 0 })
  const buffer = createSignalBuffer({ signals: client.signals })
  const none = undefined as unknown as string
  buffer.record(tenant.prompt, 'positive', { idempotencyKey: none })
  await buffer.close()
  const bodies = network.requests.map((request) => request.split('\r\n\r\n')[1])
  expect(bodies).toEqual(Array(3).fill(bodies[0]))
  expect(await listSignals()).toHaveLength(1)
})

test('a buffer keeps the order of the signals with one subject, also when batches are repeated', async () => {
  const { client, network } = await clientWith(['lost request', 'lost answer', 'none', 'sent twice'], { retries: 0 })
  const buffer = createSignalBuffer({ signals: client.signals, batchSize: 2 })
  const values = ['positive', 'negative', 'positive', 'positive', 'negative'] as const
  const sent = values.map((value, n) => buffer.record(tenant.prompt, value, { subject: 'msg_1', metadata: { n } }))
  await buffer.close()
  await network.settled()
  expect((await Promise.all(sent)).map(({ status }) => status)).toEqual([201, 200, 200, 200, 200])
  expect(await listSignals()).toMatchObject([{ value: 'negative', metadata: { n: 4 } }])
})

test('a buffer withdraws a signal that still waits', async () => {
  const buffer = createSignalBuffer({ signals: direct().signals, intervalMs: 60_000 })
  const recorded = buffer.record(tenant.prompt, 'negative', { subject: 'msg_1' })
  expect(await buffer.withdraw(tenant.prompt, 'msg_1')).toBe(true)
  expect([(await recorded).status, await listSignals()]).toEqual([201, []])
  await buffer.close()
})

test.each([
  ['done', true],
  ['refused', 'Error: refused'],
])('a vote after a withdrawal waits until that is %s, and other signals do not', async (_, outcome) => {
  const { signals } = direct()
  const turn = Promise.withResolvers<void>()
  const withdraw = async (prompt: string, subject: string) => {
    await turn.promise
    if (outcome !== true) throw new Error('refused')
    return signals.withdraw(prompt, subject)
  }
  const buffer = createSignalBuffer({ signals: { ...signals, withdraw } })
  buffer.record(tenant.prompt, 'positive', { subject: 'msg_1' })
  const withdrawn = buffer.withdraw(tenant.prompt, 'msg_1').catch(String)
  buffer.record(tenant.prompt, 'negative', { subject: 'msg_1' })
  await buffer.record(tenant.prompt, 'positive', { subject: 'msg_2' })
  expect((await listSignals()).map(({ value }) => value)).toEqual(['positive', 'positive'])
  turn.resolve()
  await buffer.close()
  expect(await withdrawn).toBe(outcome)
  expect((await listSignals()).map(({ value }) => value).sort()).toEqual(['negative', 'positive'])
})

test('a full buffer rejects the new signal, keeps the old ones, and does not end a process that does not wait', async () => {
  const refused: string[] = []
  const onError = (error: Error) => refused.push(error.message)
  const { signals } = direct()
  const buffer = createSignalBuffer({ signals, capacity: 2, intervalMs: 60_000, onError })
  const kept = [buffer.record(tenant.prompt, 'positive'), buffer.record(tenant.prompt, 'negative')]
  const full = 'The buffer is full: 2 signals wait.'
  expect(await buffer.record(tenant.prompt, 'positive').catch(String)).toBe(`Error: ${full}`)
  buffer.record(tenant.prompt, 'positive')
  await buffer.close()
  await Promise.all(kept)
  expect(await listSignals()).toHaveLength(2)
  expect(await buffer.record(tenant.prompt, 'positive').catch(String)).toBe('Error: The buffer is closed.')
  expect(refused).toEqual([full, full, 'The buffer is closed.'])
})

test('a buffer tells of a signal that the service refused, and records the others', async () => {
  const refused: [string, unknown][] = []
  const onError = (error: Error, { metadata }: { metadata?: object }) => refused.push([error.message, metadata])
  const buffer = createSignalBuffer({ signals: direct().signals, onError })
  const wrong = buffer.record(tenant.prompt, 'maybe' as 'positive', { metadata: { n: 1 } })
  buffer.record(tenant.prompt, 'positive')
  await buffer.close()
  expect(refused).toEqual([['The signal is not valid. /value must be positive or negative', { n: 1 }]])
  expect(await wrong.catch((error) => error)).toMatchObject({ status: 422 })
  expect(await listSignals()).toHaveLength(1)
})

test('closing a buffer ends a withdrawal, and what waits for it', async () => {
  const errors: Error[] = []
  const asked = Promise.withResolvers<void>()
  const withdraw: Signals['withdraw'] = (_prompt, _subject, { signal } = {}) => {
    asked.resolve()
    return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
  }
  const onError = (error: Error) => errors.push(error)
  const buffer = createSignalBuffer({ signals: { ...direct().signals, withdraw }, onError })
  const withdrawn = buffer.withdraw(tenant.prompt, 'msg_1').catch(String)
  buffer.record(tenant.prompt, 'positive', { subject: 'msg_1' }).catch(() => {})
  const stop = new AbortController()
  const closed = buffer.close(stop.signal).catch(String)
  await asked.promise
  stop.abort('the process ends')
  expect([await closed, await withdrawn]).toEqual(['the process ends', 'the process ends'])
  expect(errors.map(({ message }) => message)).toEqual(['the process ends'])
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
