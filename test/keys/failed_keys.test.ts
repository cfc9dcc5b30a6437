import { expect, test } from 'bun:test'
import type { Db, Sql } from '../../src/db/client.ts'
import { createServices } from '../../src/deps.ts'
import { createFailedKeys } from '../../src/keys/failed_keys.ts'
import { generateKey } from '../../src/keys/format.ts'
import { createLog } from '../../src/log.ts'
import { comingFrom, newAddress, trustTheTest } from '../addresses.ts'
import type { Answer } from '../client.ts'
import { eventually, rejectionOf } from '../program.ts'
import { useOwnService, useTenant } from '../use.ts'

const budget = 60

const service = useOwnService({ limits: trustTheTest })
const tenant = useTenant(service)

const ask = (key: string | undefined, address: string) =>
  service.call('GET', `/api/v1/prompts/${tenant.prompt}/history`, {
    ...(key === undefined ? {} : { key }),
    headers: comingFrom(address),
  })

async function timed<T>(work: Promise<T>): Promise<{ result: T; ms: number }> {
  const startedAt = performance.now()
  return { result: await work, ms: performance.now() - startedAt }
}

/** An address with nothing left of its budget, and how many failures that took. */
async function useUpBudget() {
  for (let failures = budget; ; failures += budget) {
    const address = newAddress()
    const failing = Promise.all(Array.from({ length: budget }, () => ask(generateKey(), address)))
    const { result, ms } = await timed(failing)
    // With each second one more may fail: if a busy machine took so long, another address is used up.
    if (ms < 700) return { address, failures, first: result[0] as Answer }
  }
}

test('an address that keeps failing is answered a second later, and nobody else is', async () => {
  const other = newAddress()
  const fresh = await service.createTenant()
  const { address, failures, first } = await useUpBudget()
  const slowed = [generateKey(), 'psk_wrong'].map((key) => timed(ask(key, address)))
  // While these are held, right keys are answered, whether the service knows them or not, and so are other addresses.
  const unslowed = Promise.all([
    ask(tenant.key, address),
    service.call('GET', `/api/v1/prompts/${fresh.prompt}/history`, {
      key: fresh.key,
      headers: comingFrom(address),
    }),
    ask(undefined, address),
    ask(generateKey(), other),
  ])
  const winner = await Promise.race([unslowed, ...slowed])
  expect(Array.isArray(winner) && winner.map(({ status }) => status)).toEqual([200, 200, 401, 401])
  for (const { result, ms } of await Promise.all(slowed)) {
    expect(ms).toBeGreaterThan(990)
    const id = (text: string) => text.replace(/"request_id":"[^"]+"/, '')
    expect([result.status, id(result.text)]).toEqual([401, id(first.text)])
  }
  const { text } = await service.call('GET', '/metrics')
  expect(text).toContain('prompt_signals_failed_keys_total{answered="slowed"} 2\n')
  expect(text).toContain(`prompt_signals_failed_keys_total{answered="at_once"} ${failures + 1}\n`)
})

test('ten thousand guesses hold up neither a key in use nor the look-up of a new one', async () => {
  const { db, clock } = service.services
  const [known, fresh] = [await service.createTenant(), await service.createTenant()]
  const batches: number[] = []
  const sql = Object.assign((text: TemplateStringsArray, ...values: unknown[]) => {
    if (text.join('?').includes('k.hash =')) batches.push(String(values[0]).split(',').length)
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
  expect(batches.length).toBeGreaterThanOrEqual(99)
  expect(batchesBefore).toBeLessThan(20)
  expect(Math.max(...batches)).toBeLessThanOrEqual(100)
  await close()
})

test('right keys that are new to the process use up nothing of what their address may fail', async () => {
  const { db, clock } = service.services
  const own = createServices({ db: { ...db, close: async () => {} }, clock, log: createLog('silent') })
  const [sender, { key, org }] = [{ address: newAddress() }, await service.createTenant()]
  const first = Array.from({ length: budget + 10 }, async () => own.verifyKey(`Bearer ${key}`, sender))
  expect((await Promise.all(first)).every((caller) => caller.org === org)).toBe(true)
  await rejectionOf(Promise.resolve().then(() => own.verifyKey(`Bearer ${generateKey()}`, sender)))
  expect(await own.metrics.text()).toContain('prompt_signals_failed_keys_total{answered="at_once"} 1\n')
  await own.close()
})

test('a budget comes back with time and with right keys, and what is remembered and held is bounded', async () => {
  let now = 0
  const counted: string[] = []
  const failedKeys = createFailedKeys({ failed: (how) => counted.push(how) }, () => now)
  const take = (address: string, times: number) =>
    Array.from({ length: times }, () => failedKeys.take(address)).filter(Boolean).length
  expect([take('a', budget + 3), take('b', 1)]).toEqual([budget, 1])
  now += 5_000
  expect(take('a', 9)).toBe(5)
  failedKeys.giveBack('a')
  expect(take('a', 2)).toBe(1)
  now += 3_600_000
  failedKeys.giveBack('a')
  expect(take('a', 100)).toBe(budget)
  for (let address = 0; address < 50_000; address += 1) failedKeys.take(`${address}`)
  // It was forgotten for the others.
  expect(take('a', 1)).toBe(1)

  const fail = (isWithinBudget: boolean) =>
    Array.from({ length: 3_000 }, () => failedKeys.fail(isWithinBudget)).filter((held) => held !== undefined)
  const held = fail(false)
  expect([fail(true).length, held.length]).toEqual([0, 2_000])
  expect(counted.filter((how) => how === 'slowed')).toHaveLength(2_000)
  await Promise.all(held)
  expect(fail(false)).toHaveLength(2_000)
})
