import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { ServiceError } from '../errors.ts'
import { BoundedCache } from '../lib/bounded_cache.ts'
import { hashKey, isWellFormedKey } from './format.ts'
import { findLiveKeyByHash, type KnownKey, markKeyUsed } from './store.ts'

/** The organisation, and the public ids of it and of its key. */
export type Caller = { organisationId: number; org: string; key: string }

/** Turns the Authorization header into the calling organisation, or throws `unauthorized`. */
export type KeyVerifier = (authorization: string | null) => Promise<Caller>

/** A revoked key must be refused within a second everywhere; half of it is left for the look-up. */
const trustedForMs = 500
const maxCachedKeys = 10_000
const lastUsedPrecisionMs = 60_000

const bearer = /^Bearer +([^\s]+) *$/i

export function createKeyVerifier(db: Db, clock: Clock): KeyVerifier {
  // Holds look-ups, not only their results, so that a burst of requests with one key asks once.
  const cache = new BoundedCache<string, { askedAt: number; key: Promise<KnownKey | undefined> }>(maxCachedKeys)

  async function lookUp(hash: Buffer): Promise<KnownKey | undefined> {
    const key = await findLiveKeyByHash(db.sql, hash)
    const now = clock.now()
    if (key && now.getTime() - (key.lastUsedAt?.getTime() ?? 0) > lastUsedPrecisionMs) {
      // Not worth failing or delaying a request for.
      markKeyUsed(db.sql, key.id, now).catch(() => {})
    }
    return key
  }

  function findKey(text: string): Promise<KnownKey | undefined> {
    const hash = hashKey(text)
    const name = hash.toString('latin1')
    const known = cache.get(name)
    if (known && performance.now() - known.askedAt < trustedForMs) return known.key
    const key = lookUp(hash)
    cache.set(name, { askedAt: performance.now(), key })
    key.catch(() => cache.delete(name))
    return key
  }

  return async (authorization) => {
    const text = bearer.exec(authorization ?? '')?.[1]
    const key = text && isWellFormedKey(text) ? await findKey(text) : undefined
    if (!key || (key.expiresAt && key.expiresAt <= clock.now())) throw unauthorized()
    return { organisationId: key.organisationId, org: key.org, key: key.publicId }
  }
}

const unauthorized = () =>
  new ServiceError(
    'unauthorized',
    'Send a valid API key as "Authorization: Bearer psk_…". This one is missing, malformed, unknown, revoked or expired.',
    {},
    { 'www-authenticate': 'Bearer' },
  )
