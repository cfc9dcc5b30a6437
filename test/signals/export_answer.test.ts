// How exports are sent: compressed, a few at a time, at the pace of their clients, and aborted when they fail.
import { expect, spyOn, test } from 'bun:test'
import { revokeKey } from '../../src/keys/manage.ts'
import { eventually } from '../program.ts'
import { startService, type Tenant } from '../service.ts'
import { formatRequest, openConnection } from '../socket.ts'
import { useNewTenant, useOwnService } from '../use.ts'
import { exportSignalsOf, fillLargeSignals, fillSignals, idsIn, organisationIdOf } from './fixtures.ts'

const service = useOwnService()
const tenant = useNewTenant(service, 1_000_000)

const exportOf = (prompt: string | null, query = '', headers?: Record<string, string>) =>
  exportSignalsOf(service, tenant.key, prompt, query, headers)

test('is compressed for who accepts gzip, and for nobody else', async () => {
  await fillSignals(service, tenant.prompt, 3_000)
  const ask = (accepted: string) => exportOf(tenant.prompt, '', { 'accept-encoding': accepted })
  const zipped = await ask('br, gzip;q=0.8')
  const unzipped = await ask('identity')
  const rejected = await ask('gzip;q=0')
  const encodings = [zipped, unzipped, rejected].map(({ headers }) => headers.get('content-encoding'))
  expect(encodings).toEqual(['gzip', null, null])
  expect(zipped.text).toBe(unzipped.text)
})

/** Requests an export, and reads nothing but the first bytes until the test goes on. */
async function ask(path: string, { url } = service, { key } = tenant) {
  const { socket, until } = await openConnection(url)
  socket.write(formatRequest('GET', path, [`Authorization: Bearer ${key}`, 'Connection: close']))
  await until((answer) => answer !== '')
  socket.pause()
  return {
    close: () => socket.destroy(),
    /** Reads the rest. A response in chunks is whole when the last one is empty. */
    async isWhole(): Promise<boolean> {
      socket.resume()
      return (await until(() => false)).endsWith('0\r\n\r\n')
    },
  }
}

test('an organisation has two exports at a time, and another one once a client has left', async () => {
  await fillLargeSignals(service, tenant.prompt)
  const path = `/api/v1/prompts/${tenant.prompt}/signals/export`
  const [first, other] = [await ask(path), await ask(path)]
  const { status, headers, body } = await exportOf(tenant.prompt)
  expect(status).toBe(503)
  expect(headers.get('retry-after')).toBe('10')
  expect(body.error.code).toBe('unavailable')
  // Another organisation has its own slots.
  const calm = await service.createTenant(10)
  expect((await service.call('GET', '/api/v1/signals/export', { key: calm.key })).status).toBe(200)
  first.close()
  await eventually(async () => (await exportOf(tenant.prompt, '?value=negative')).status, 200)
  other.close()
})

test('an export does not read ahead of its client', async () => {
  await fillSignals(service, tenant.prompt, 100_000)
  const before = process.memoryUsage.rss()
  const slow = await ask(`/api/v1/prompts/${tenant.prompt}/signals/export`)
  // A whole export of as many beside it shows that there was time for both.
  const whole = await exportOf(tenant.prompt, '?value=negative')
  expect(idsIn(whole)).toHaveLength(10_000)
  expect(process.memoryUsage.rss() - before).toBeLessThan(150 * 1024 * 1024)
  slow.close()
})

test('HEAD takes no slot', async () => {
  for (let n = 0; n < 4; n += 1) {
    const { status, text } = await service.call('HEAD', '/api/v1/signals/export', { key: tenant.key })
    expect(status).toBe(200)
    expect(text).toBe('')
  }
})

/** What is held by this many reads of an organisation; they end with release(). */
async function holdShare(of: Tenant, reads: number): Promise<() => void> {
  const organisationId = await organisationIdOf(service, of)
  const held = Promise.withResolvers<void>()
  for (let n = 0; n < reads; n += 1) void service.services.db.heavyRead(organisationId, () => held.promise)
  return held.resolve
}

test('an export waits for the organisation’s share of the database, and others do not', async () => {
  await fillSignals(service, tenant.prompt, 10)
  const other = await service.createTenant(10)
  const release = await holdShare(tenant, 2)
  let isAnswered = false
  const waiting = exportOf(null).finally(() => {
    isAnswered = true
  })
  for (let n = 0; n < 10; n += 1) expect((await exportSignalsOf(service, other.key, null)).status).toBe(200)
  expect(isAnswered).toBe(false)
  release()
  expect(idsIn(await waiting)).toHaveLength(10)
})

test('all organisations together have twenty exports at a time', async () => {
  const holder = await service.createTenant(10)
  const others = await Promise.all(Array.from({ length: 10 }, () => service.createTenant(10)))
  const releases = [await holdShare(tenant, 2), await holdShare(holder, 2)]
  const isTooMany = ({ status, headers }: { status: number; headers: Headers }) =>
    status === 503 && headers.get('retry-after') === '10'
  const asked = await Promise.all(
    others.map(async ({ key }) => {
      const three = [1, 2, 3].map(() => exportSignalsOf(service, key, null))
      // The third is rejected immediately, which shows that the two others have their permits.
      expect(isTooMany(await Promise.race(three))).toBe(true)
      return three
    }),
  )
  expect(isTooMany(await exportOf(null))).toBe(true)
  for (const release of releases) release()
  const statuses = (await Promise.all(asked.flat())).map(({ status }) => status)
  expect(statuses.filter((status) => status === 200)).toHaveLength(20)
  expect((await exportOf(null)).status).toBe(200)
})

test('a service that stops aborts its exports, so that none looks complete', async () => {
  const stopping = await startService()
  try {
    const own = await stopping.createTenant(10)
    await fillLargeSignals(stopping, own.prompt)
    const slow = await ask('/api/v1/signals/export', stopping, own)
    await stopping.services.drain.run(0)
    expect(await slow.isWhole()).toBe(false)
  } finally {
    await stopping.close()
  }
})

test('an export is aborted when its key is revoked', async () => {
  const { db } = service.services
  await fillLargeSignals(service, tenant.prompt)
  const slow = await ask('/api/v1/signals/export')
  await revokeKey(db, service.clock, tenant.keyId)
  // Until then the key may be taken for what it was.
  await eventually(async () => (await service.call('GET', '/api/v1/key', { key: tenant.key })).status, 401)
  expect(await slow.isWhole()).toBe(false)
})

test('an export whose database fails is aborted, and releases its slot', async () => {
  const { sql } = service.services.db
  await fillLargeSignals(service, tenant.prompt)
  const path = '/api/v1/signals/export'
  expect(await (await ask(path)).isWhole()).toBe(true)
  const slow = [await ask(path), await ask(path)]
  const logged = spyOn(service.services.log, 'error')
  await sql`alter table signals rename to signals_away`
  try {
    for (const one of slow) expect(await one.isWhole()).toBe(false)
    const line = [{ err: expect.any(Error), request_id: expect.any(String) }, 'export aborted']
    expect(logged.mock.calls as unknown[]).toEqual([line, line])
    // What fails before the first line is an answer.
    expect((await exportOf(null)).status).toBe(500)
  } finally {
    logged.mockRestore()
    await sql`alter table signals_away rename to signals`
  }
  expect((await exportOf(null, '?since=2027-01-01')).status).toBe(200)
})
