import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { ServiceError } from '../errors.ts'
import { BoundedCache } from '../lib/bounded_cache.ts'
import { createGroupLookup } from '../lib/group_lookup.ts'
import { hashKey, isWellFormedKey } from './format.ts'
import type { LastUsed } from './last_used.ts'
import { findLiveKeys, type KnownKey } from './store.ts'

/** The organisation, and the public ids of it and of its key. */
export type Caller = Pick<KnownKey, 'organisationId' | 'org' | 'key'>

/**
 * Turns the Authorization header into the calling organisation; throws or rejects with `unauthorized`. A caller who
 * is known is there at once.
 */
export type KeyVerifier = (authorization: string | null) => Caller | Promise<Caller>

/** What was found for a key, or the look-up that is under way, so that a burst of requests with one key asks once. */
type Answer = { askedAt: number; found: KnownKey | undefined | Promise<KnownKey | undefined> }

/** A revoked key must be refused within a second everywhere; half of it is left for the look-up. */
const trustedForMs = 500
const maxCachedKeys = 10_000

const bearer = /^Bearer +([^\s]+) *$/i

/** Written as nearly everybody writes it, there is nothing to search for. */
const readBearer = (header: string): string | undefined =>
  header.length === 47 && header.startsWith('Bearer psk_') ? header.slice(7) : bearer.exec(header)?.[1]

export function createKeyVerifier(db: Db, clock: Clock, lastUsed: LastUsed): KeyVerifier {
  const answers = new BoundedCache<string, Answer>(maxCachedKeys)
  const findLiveKey = createGroupLookup((hashes) => findLiveKeys(db.sql, hashes))

  async function lookUp(text: string): Promise<KnownKey | undefined> {
    const key = await findLiveKey(hashKey(text).toString('hex'))
    if (key) lastUsed.record(key.id, clock.now())
    return key
  }

  function findKey(text: string): Answer['found'] {
    const known = answers.get(text)
    if (known && performance.now() - known.askedAt < trustedForMs) return known.found
    // Whatever has an answer is well-formed.
    if (!known && !isWellFormedKey(text)) return undefined
    const found = lookUp(text)
    const answer: Answer = { askedAt: performance.now(), found }
    answers.set(text, answer)
    found.then(
      (key) => {
        answer.found = key
      },
      () => answers.delete(text),
    )
    return found
  }

  function requireLive(key: KnownKey | undefined): Caller {
    if (!key || (key.expiresAt && key.expiresAt <= clock.now())) throw unauthorized()
    return key
  }

  return (authorization) => {
    const text = readBearer(authorization ?? '')
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
