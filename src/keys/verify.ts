import { hash } from 'node:crypto'
import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { ServiceError } from '../errors.ts'
import { randomBase62, toBase62 } from '../lib/base62.ts'
import { BoundedCache } from '../lib/bounded_cache.ts'
import { createDataLoader } from '../lib/concurrency.ts'
import type { Caller, KeyVerifier } from './caller.ts'
import { findLiveKeys, markKeysUsed } from './store.ts'

const shape = /^psk_[0-9A-Za-z]{36}$/

/** Loads the large module with the first key, to keep the start short. */
const checksum = (text: string) => toBase62(process.getBuiltinModule('node:zlib').crc32(text), 6)

export function generateKey(): string {
  const body = `psk_${randomBase62(30)}`
  return body + checksum(body)
}

/** Checks shape and checksum, so that a typo or garbage is rejected without a look-up. */
export const isWellFormedKey = (text: string): boolean =>
  shape.test(text) && checksum(text.slice(0, -6)) === text.slice(-6)

/** The characters shown of a key: enough to recognise it by, far too little to guess it from. */
export const prefixOfKey = (key: string): string => key.slice(0, 12)

export const hashKey = (key: string): Buffer => hash('sha256', key, 'buffer')

/** A look-up that is in flight or done, so that a burst of requests with one key is one look-up. */
type Lookup = { startedAt: number; found: Caller | undefined | Promise<Caller | undefined> }

/** A revoked key must be rejected within a second on every replica. The look-up may take the other half. */
const trustedForMs = 500
/** Keeps each look-up of guessed keys short. */
const maxUnknownBatch = 100

const bearer = /^Bearer +([^\s]+) *$/i

export function createKeyVerifier(db: Db, clock: Clock) {
  const lastUsed = createLastUsed(db)
  // Live keys have separate caches and queues, so that guessed keys neither evict nor delay them. The caches hold the
  // keys themselves: hashing each request's key costs throughput.
  const createCaches = () => ({
    liveKeys: new BoundedCache<string, Lookup>(10_000),
    unknownKeys: new BoundedCache<string, Lookup>(1_000),
  })
  let caches = createCaches()
  // Neither revoked nor of a suspended organisation. requireUnexpired checks the expiry.
  const find = (hashes: string[]) => findLiveKeys(db.sql, hashes)
  const findLiveKey = createDataLoader(find)
  const findUnknownKey = createDataLoader(find, String, maxUnknownBatch)

  async function lookUp(text: string, wasLive: boolean): Promise<Caller | undefined> {
    const hash = hashKey(text).toString('hex')
    const key = await (wasLive ? findLiveKey(hash) : findUnknownKey(hash))
    if (key) lastUsed.record(key.key, clock.now())
    return key
  }

  function findCaller(text: string): Lookup['found'] {
    // A key that is looked up before a failover is not cached after it.
    const { liveKeys, unknownKeys } = caches
    const live = liveKeys.get(text)
    const known = live ?? unknownKeys.get(text)
    if (known && performance.now() - known.startedAt < trustedForMs) return known.found
    // A key that was looked up before is well-formed.
    if (!known && !isWellFormedKey(text)) return undefined
    const found = lookUp(text, live !== undefined)
    const lookup: Lookup = { startedAt: performance.now(), found }
    const lookups = live ? liveKeys : unknownKeys
    lookups.set(text, lookup)
    found.then(
      (key) => {
        lookup.found = key
        const current = lookups.get(text)
        if (current && current !== lookup) return
        lookups.delete(text)
        const cache = key ? liveKeys : unknownKeys
        cache.set(text, lookup)
      },
      // A failed look-up is not cached. A live key stays in its cache as stale, for the queue of live keys.
      () => {
        if (lookups.get(text) !== lookup) return
        if (live) lookup.startedAt = Number.NEGATIVE_INFINITY
        else lookups.delete(text)
      },
    )
    return found
  }

  function requireUnexpired(key: Caller | undefined): Caller {
    if (!key || (key.expiresAt && key.expiresAt <= clock.now())) throw unauthorized()
    return key
  }

  const verify: KeyVerifier = (authorization) => {
    const [, text] = bearer.exec(authorization ?? '') ?? []
    if (text === undefined) throw unauthorized()
    const found = findCaller(text)
    return found instanceof Promise ? found.then(requireUnexpired) : requireUnexpired(found)
  }

  return {
    verify,
    /** After a failover, another organisation or key may have the same id. */
    forget() {
      caches = createCaches()
    },
    flushLastUsed: lastUsed.flush,
  }
}

/** Runs the look-up that every request needs. Rejects when it cannot run. */
export const probeKeys = (db: Db): Promise<unknown> => findLiveKeys(db.sql, [hashKey('').toString('hex')])

const unauthorized = () =>
  new ServiceError(
    'unauthorized',
    'Send a valid API key as "Authorization: Bearer psk_…". This one is missing, malformed, unknown, revoked or expired.',
    {},
    { 'www-authenticate': 'Bearer' },
  )

const flushEveryMs = 60_000
/** Bounds the statement, and the memory while the database is away. */
const maxPending = 20_000

/** Writes once a minute for all keys. The first use after a pause is written immediately: a new key shows up. */
export function createLastUsed(db: Db) {
  let pending = new Map<string, Date>()
  let flushedAt = Number.NEGATIVE_INFINITY
  let timer: ReturnType<typeof setTimeout> | undefined

  function record(keyId: string, usedAt: Date): void {
    if (pending.size >= maxPending && !pending.has(keyId)) return
    pending.set(keyId, usedAt)
    timer ??= setTimeout(flush, Math.max(0, flushedAt + flushEveryMs - performance.now())).unref()
  }

  /** Writes what is recorded. The next flush retries what could not be written. */
  async function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    const batch = pending
    if (batch.size === 0) return
    pending = new Map()
    flushedAt = performance.now()
    try {
      await markKeysUsed(db.sql, batch)
    } catch {
      for (const [keyId, usedAt] of batch) if (!pending.has(keyId)) record(keyId, usedAt)
    }
  }

  return { record, flush }
}
