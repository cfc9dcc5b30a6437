import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { ServiceError } from '../errors.ts'
import { BoundedCache } from '../lib/bounded_cache.ts'
import { createGroupLookup } from '../lib/group_lookup.ts'
import { hashKey, isWellFormedKey } from './format.ts'
import type { LastUsed } from './last_used.ts'
import { findLiveKeys, type KnownKey } from './store.ts'

/** The calling organisation, its key, the public ids of both, and what the key may do. */
export type Caller = Pick<KnownKey, 'id' | 'organisationId' | 'org' | 'key' | 'scopes' | 'browser'>

/**
 * Turns the Authorization header into the caller; throws or rejects with `unauthorized`. A caller who was looked up just
 * now is returned without a promise, which took 7 % more pages of history a second at 64 connections, and 8 % more signals
 * at 256.
 */
export type KeyVerifier = (authorization: string | null) => Caller | Promise<Caller>

/** A look-up that is under way or done, so that a burst of requests with one key is one look-up. */
type Lookup = { startedAt: number; found: KnownKey | undefined | Promise<KnownKey | undefined> }

/** A revoked key must be refused within a second on every replica; half of that is left for the look-up. */
const trustedForMs = 500
const maxCachedKeys = 10_000

const bearer = /^Bearer +([^\s]+) *$/i

export function createKeyVerifier(db: Db, clock: Clock, lastUsed: LastUsed): KeyVerifier {
  // By the text of the key: hashing it for each request would cost a twentieth of a request.
  const lookups = new BoundedCache<string, Lookup>(maxCachedKeys)
  const findLiveKey = createGroupLookup((hashes) => findLiveKeys(db.sql, hashes))

  async function lookUp(text: string): Promise<KnownKey | undefined> {
    const key = await findLiveKey(hashKey(text).toString('hex'))
    if (key) lastUsed.record(key.id, clock.now())
    return key
  }

  function findKey(text: string): Lookup['found'] {
    const known = lookups.get(text)
    if (known && performance.now() - known.startedAt < trustedForMs) return known.found
    // A text that was looked up before is well-formed.
    if (!known && !isWellFormedKey(text)) return undefined
    const found = lookUp(text)
    const lookup: Lookup = { startedAt: performance.now(), found }
    lookups.set(text, lookup)
    found.then(
      (key) => {
        lookup.found = key
      },
      // A failure is not remembered: the next request looks the key up again.
      () => lookups.get(text) === lookup && lookups.delete(text),
    )
    return found
  }

  function requireLive(key: KnownKey | undefined): Caller {
    if (!key || (key.expiresAt && key.expiresAt <= clock.now())) throw unauthorized()
    return key
  }

  return (authorization) => {
    const [, text] = bearer.exec(authorization ?? '') ?? []
    const found = text === undefined ? undefined : findKey(text)
    return found instanceof Promise ? found.then(requireLive) : requireLive(found)
  }
}

const unauthorized = () =>
  new ServiceError(
    'unauthorized',
    'Send a valid API key as "Authorization: Bearer psk_…". This one is missing, malformed, unknown, revoked or expired.',
    {},
    { 'www-authenticate': 'Bearer' },
  )
