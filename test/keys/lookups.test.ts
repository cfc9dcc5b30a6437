import { expect, test } from 'bun:test'
import { crc32 } from 'node:zlib'
import type { Sql } from '../../src/db/client.ts'
import { createServices } from '../../src/deps.ts'
import { markKeysUsed } from '../../src/keys/store.ts'
import { createLastUsed, generateKey, isWellFormedKey } from '../../src/keys/verify.ts'
import { createLog } from '../../src/log.ts'
import { eventually, rejectionOf } from '../program.ts'
import type { Tenant } from '../service.ts'
import { useOwnService } from '../use.ts'

const service = useOwnService()

/** A replica on the same database, and its statements that look keys up or mark them as used. */
function startReplica() {
  const { db, clock } = service.services
  const statements: string[] = []
  const sql = Object.assign((text: TemplateStringsArray, ...values: unknown[]) => {
    statements.push(text.join('?'))
    return db.sql(text, ...values)
  }, db.sql) as Sql
  const replica = createServices({ db: { ...db, sql, close: async () => {} }, clock, log: createLog('silent') })
  const count = (part: string) => statements.filter((text) => text.includes(part)).length
  return {
    verify: async (key: string) => replica.verifyKey(`Bearer ${key}`),
    lookUps: () => count('k.hash ='),
    marks: () => count('set last_used_at'),
    close: replica.close,
  }
}

async function rowOf({ keyId }: Tenant): Promise<{ id: number; usedAt: Date | null }> {
  const [row] = await service.services.db.sql<{ id: number; usedAt: Date | null }>`
    select id, last_used_at as "usedAt" from api_keys where public_id = ${keyId}`
  return row as { id: number; usedAt: Date | null }
}

test('concurrent look-ups and uses of keys are one statement each, and each caller gets its own organisation', async () => {
  const tenants = await Promise.all(Array.from({ length: 20 }, () => service.createTenant()))
  const { verify, lookUps, marks, close } = startReplica()
  const callers = await Promise.all(tenants.map(({ key }) => verify(key)))
  expect(callers.map(({ org }) => org)).toEqual(tenants.map(({ org }) => org))
  expect(lookUps()).toBe(1)
  await close()
  expect(marks()).toBe(1)
})

test('the first use of a key is written immediately, and later ones when the service stops', async () => {
  const { verify, marks, close } = startReplica()
  const [first, second] = [await service.createTenant(), await service.createTenant()]
  await verify(first.key)
  await eventually(async () => (await rowOf(first)).usedAt !== null, true)
  await verify(second.key)
  expect((await rowOf(second)).usedAt).toBeNull()
  await close()
  expect(Math.abs(Number((await rowOf(second)).usedAt) - Date.now())).toBeLessThan(60_000)
  expect(marks()).toBe(2)
})

test('a last use is never set back, and one that could not be written is kept for the next flush', async () => {
  const { db } = service.services
  const tenant = await service.createTenant()
  const at = (minute: number) => new Date(`2026-11-14T10:0${minute}:00Z`)
  const [earlier, later, latest] = [at(1), at(2), at(3)]
  for (const usedAt of [later, earlier]) await markKeysUsed(db.sql, new Map([[tenant.keyId, usedAt]]))
  expect((await rowOf(tenant)).usedAt).toEqual(later)

  let isAway = true
  const sql = ((text: TemplateStringsArray, ...values: unknown[]) =>
    isAway ? Promise.reject(new Error('away')) : db.sql(text, ...values)) as Sql
  const lastUsed = createLastUsed({ ...db, sql })
  lastUsed.record(tenant.keyId, latest)
  await lastUsed.flush()
  isAway = false
  await lastUsed.flush()
  expect((await rowOf(tenant)).usedAt).toEqual(latest)
})

/** Sends guessed keys; each is rejected once it was looked up. */
const guess = (verify: ReturnType<typeof startReplica>['verify'], number: number): Promise<string>[] =>
  Array.from({ length: number }, () => rejectionOf(verify(generateKey())))

/** Longer than a key is trusted without another look-up. */
const untilTooOld = () => Bun.sleep(510)

test('guessed keys do not evict a key in use from the cache', async () => {
  const { verify, lookUps, close } = startReplica()
  const { key, org } = await service.createTenant()
  await verify(key)
  for (let round = 0; round < 12; round += 1) await Promise.all(guess(verify, 1_000))
  await untilTooOld()
  const before = lookUps()
  const guesses = guess(verify, 1)
  expect(await verify(key)).toMatchObject({ org })
  await Promise.all(guesses)
  // An evicted key would be unknown, and looked up in one statement with the guess.
  expect(lookUps() - before).toBe(2)
  await close()
})

test('guessed keys in the queue do not delay the look-up of a key in use', async () => {
  const { verify, lookUps, close } = startReplica()
  const { key, org } = await service.createTenant()
  await verify(key)
  await untilTooOld()
  const guesses = guess(verify, 10_000)
  expect(await verify(key)).toMatchObject({ org })
  const lookUpsBefore = lookUps()
  const messages = await Promise.all(guesses)
  expect(lookUpsBefore).toBeLessThan(20)
  expect(lookUps()).toBeGreaterThanOrEqual(100)
  expect(messages.filter((message) => !message.startsWith('Send a valid API key'))).toEqual([])
  await close()
})

test('a key is psk_, thirty random characters and six of CRC-32 over them', () => {
  const key = generateKey()
  expect(key).toMatch(/^psk_[0-9A-Za-z]{36}$/)
  let sum = 0
  for (const letter of key.slice(-6)) {
    sum = sum * 62 + '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'.indexOf(letter)
  }
  expect(sum).toBe(crc32(key.slice(0, -6)))
  expect(isWellFormedKey(key)).toBe(true)
})

test('a key with any one character changed is rejected without a look-up', () => {
  const key = generateKey()
  for (let position = 0; position < key.length; position += 1) {
    const changed = key.slice(0, position) + (key[position] === 'x' ? 'y' : 'x') + key.slice(position + 1)
    expect(isWellFormedKey(changed)).toBe(false)
  }
})
