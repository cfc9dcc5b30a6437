import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Db, Sql } from '../../src/db/client.ts'
import { createServices } from '../../src/deps.ts'
import { createFailedKeys } from '../../src/keys/failed_keys.ts'
import { generateKey } from '../../src/keys/format.ts'
import { createLog } from '../../src/log.ts'
import { eventually, rejectionOf } from '../program.ts'
import { startService, type Tenant, type TestService } from '../service.ts'

const budget = 60

let service: TestService
let tenant: Tenant
let addresses = 0

beforeAll(async () => {
  service = await startService({ limits: { TRUSTED_PROXIES: '127.0.0.0/8' } })
  tenant = await service.createTenant()
})

afterAll(() => service.close())

/** An address that no other test uses. */
function newAddress(): string {
  addresses += 1
  return `192.0.2.${addresses}`
}

const ask = (key: string | undefined, address: string) =>
  service.call('GET', `/api/v1/prompts/${tenant.prompt}/history`, {
    ...(key === undefined ? {} : { key }),
    headers: { 'x-forwarded-for': address },
  })

async function timed<T>(work: Promise<T>): Promise<{ result: T; ms: number }> {
  const startedAt = performance.now()
  return { result: await work, ms: performance.now() - startedAt }
}

const failOften = (address: string) => Promise.all(Array.from({ length: budget }, () => ask(generateKey(), address)))

test('an address that keeps failing is answered a second later, and nobody else is', async () => {
  const [address, other] = [newAddress(), newAddress()]
  const [first] = await failOften(address)
  const slowed = [generateKey(), 'psk_wrong'].map((key) => timed(ask(key, address)))
  // While these are held, right keys are answered, whether the service knows them or not, and so are other addresses.
  const fresh = await service.createTenant()
  const unslowed = Promise.all([
    ask(tenant.key, address),
    service.call('GET', `/api/v1/prompts/${fresh.prompt}/history`, {
      key: fresh.key,
      headers: { 'x-forwarded-for': address },
    }),
    ask(undefined, address),
    ask(generateKey(), other),
  ])
  const winner = await Promise.race([unslowed, ...slowed])
  expect(Array.isArray(winner) && winner.map(({ status }) => status)).toEqual([200, 200, 401, 401])
  for (const { result, ms } of await Promise.all(slowed)) {
    expect(ms).toBeGreaterThan(990)
    const id = (text: string) => text.replace(/"request_id":"[^"]+"/, '')
    expect([result.status, id(result.text)]).toEqual([401, id((first as { text: string }).text)])
  }
  const { text } = await service.call('GET', '/metrics')
  expect(text).toContain('prompt_signals_failed_keys_total{answered="slowed"} 2\n')
  expect(text).toContain(`prompt_signals_failed_keys_total{answered="at_once"} ${budget + 1}\n`)
})

test('ten thousand guesses hold up neither a key in use nor the look-up of a new one', async () => {
  const { db, clock } = service.services
  const [known, fresh] = [await service.createTenant(), await service.createTenant()]
  const batches: number[] = []
  const sql = Object.assign((text: TemplateStringsArray, ...values: unknown[]) => {
    if (text.join('?').includes('find_live_keys')) batches.push(String(values[0]).split(',').length)
    return db.sql(text, ...values)
  }, db.sql) as Sql
  const own: Db = { ...db, sql, close: async () => {} }
  const { verifyKey, close } = createServices({ db: own, clock, log: createLog('silent') })
  const attacker = { address: newAddress() }
  const guess = (number: number) =>
    Array.from({ length: number }, () =>
      rejectionOf(Promise.resolve().then(() => verifyKey(`Bearer ${generateKey()}`, attacker))),
    )
  await verifyKey(`Bearer ${known.key}`, attacker)
  const lookedUpAt = performance.now()
  await Promise.all(guess(budget))
  // By then the key must be looked up again.
  await eventually(() => performance.now() - lookedUpAt > 500, true)
  batches.length = 0
  const guesses = guess(10_000)
  await Promise.resolve()
  const callers = [
    verifyKey(`Bearer ${known.key}`, attacker),
    verifyKey(`Bearer ${fresh.key}`, { address: newAddress() }),
  ]
  expect((await Promise.all(callers)).map(({ org }) => org)).toEqual([known.org, fresh.org])
  const batchesBefore = batches.length
  const messages = await Promise.all(guesses)
  expect(messages.every((message) => message.startsWith('Send a valid API key'))).toBe(true)
  expect(batches.length).toBeGreaterThanOrEqual(100)
  expect(batchesBefore).toBeLessThan(20)
  expect(Math.max(...batches)).toBeLessThanOrEqual(100)
  await close()
})

test('a budget comes back with time, and what is remembered and held is bounded', async () => {
  let now = 0
  const counted: string[] = []
  const observe = { failed: (how: 'at_once' | 'slowed') => counted.push(how) }
  const failed = createFailedKeys(observe, () => now)
  const fail = (address: string, times: number) =>
    Array.from({ length: times }, () => failed.count(address)).filter(Boolean)
  expect([fail('a', budget).length, failed.isOverBudget('a'), failed.isOverBudget('b')]).toEqual([0, true, false])
  expect(fail('a', 3)).toHaveLength(3)
  now += 5_000
  expect([failed.isOverBudget('a'), fail('a', 6).length]).toEqual([false, 1])
  now += 3_600_000
  expect(fail('a', budget + 1)).toHaveLength(1)
  // No more than two thousand are held at once.
  const held = fail('a', 3_000)
  const slowed = counted.filter((how) => how === 'slowed')
  expect([held.length, slowed.length, counted.length]).toEqual([1_995, 2_000, 60 + 3 + 6 + 61 + 3_000])
  for (let address = 0; address < 50_000; address += 1) failed.count(`${address}`)
  expect(failed.isOverBudget('a')).toBe(false)
  await Promise.all(held)
  fail('a', budget)
  expect(fail('a', 1)).toHaveLength(1)
})
