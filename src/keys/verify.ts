import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { ServiceError } from '../errors.ts'
import type { Caller, KeyVerifier, Sender } from '../http/caller.ts'
import { BoundedCache } from '../lib/bounded_cache.ts'
import { createDataLoader } from '../lib/data_loader.ts'
import type { FailedKeys } from './failed_keys.ts'
import { hashKey, isWellFormedKey } from './format.ts'
import type { LastUsed } from './last_used.ts'
import { findLiveKeys, type KnownKey } from './store.ts'

/** A look-up that is under way or done, so that a burst of requests with one key is one look-up. */
type Lookup = { startedAt: number; found: KnownKey | undefined | Promise<KnownKey | undefined> }

/** A revoked key must be rejected within a second on every replica; half of that is left for the look-up. */
const trustedForMs = 500
const maxCachedKeys = 10_000
/** Keys that are being looked up for the first time, or were not found: they must not evict those in use. */
const maxUnknownKeys = 1_000
/** How many keys of addresses that keep failing are looked up together; each look-up occupies the database only briefly. */
const maxSuspectBatch = 100

const bearer = /^Bearer +([^\s]+) *$/i

export function createKeyVerifier(db: Db, clock: Clock, lastUsed: LastUsed, failedKeys: FailedKeys): KeyVerifier {
  // The text of the key is what is cached by: hashing it for each request would cost a twentieth of a request.
  const liveKeys = new BoundedCache<string, Lookup>(maxCachedKeys)
  const unknownKeys = new BoundedCache<string, Lookup>(maxUnknownKeys)
  const find = (hashes: string[]) => findLiveKeys(db.sql, hashes)
  const findLiveKey = createDataLoader(find)
  const findSuspectKey = createDataLoader(find, String, maxSuspectBatch)

  async function lookUp(text: string, isSuspect: boolean): Promise<KnownKey | undefined> {
    const hash = hashKey(text).toString('hex')
    const key = await (isSuspect ? findSuspectKey(hash) : findLiveKey(hash))
    if (key) lastUsed.record(key.id, clock.now())
    return key
  }

  /** A key that was live when it was last looked up is no guess, and waits for nobody's. */
  function findKey(text: string, live: Lookup | undefined, isSuspect: boolean): Lookup['found'] {
    const known = live ?? unknownKeys.get(text)
    if (known && isFresh(known)) return known.found
    // A text that was looked up before is well-formed.
    if (!known && !isWellFormedKey(text)) return undefined
    const found = lookUp(text, isSuspect)
    const lookup: Lookup = { startedAt: performance.now(), found }
    const lookups = live ? liveKeys : unknownKeys
    lookups.set(text, lookup)
    found.then(
      (key) => {
        lookup.found = key
        if (lookups.get(text) !== lookup) return
        lookups.delete(text)
        const cache = key ? liveKeys : unknownKeys
        cache.set(text, lookup)
      },
      // A failure is not remembered: the next request looks the key up again.
      () => lookups.get(text) === lookup && lookups.delete(text),
    )
    return found
  }

  const isLive = (key: Lookup['found']): key is KnownKey =>
    key !== undefined && !(key instanceof Promise) && !(key.expiresAt && key.expiresAt <= clock.now())

  /** The attempt is taken from the address before the look-up, so that many at once are more than its budget too. */
  function tryKey(text: string, live: Lookup | undefined, sender: Sender): Caller | Promise<Caller> {
    const { address } = sender
    const isWithinBudget = live ? undefined : failedKeys.take(address)
    const requireLive = (key: KnownKey | undefined): Caller | Promise<Caller> => {
      if (!isLive(key)) return reject(sender, isWithinBudget ?? failedKeys.take(address))
      if (isWithinBudget) failedKeys.giveBack(address)
      return key
    }
    const found = findKey(text, live, isWithinBudget === false)
    return found instanceof Promise ? found.then(requireLive) : requireLive(found)
  }

  function reject(sender: Sender, isWithinBudget: boolean): Promise<never> {
    const held = failedKeys.fail(isWithinBudget)
    if (!held) throw unauthorized()
    sender.dropBody?.()
    return held.then(() => {
      throw unauthorized()
    })
  }

  return (authorization, sender = nowhere) => {
    const [, text] = bearer.exec(authorization ?? '') ?? []
    // Without a key there is nothing that could be guessed.
    if (text === undefined) throw unauthorized()
    const live = liveKeys.get(text)
    return live && isFresh(live) && isLive(live.found) ? live.found : tryKey(text, live, sender)
  }
}

const isFresh = ({ startedAt }: Lookup): boolean => performance.now() - startedAt < trustedForMs

const nowhere: Sender = { address: 'nowhere' }

const unauthorized = () =>
  new ServiceError(
    'unauthorized',
    'Send a valid API key as "Authorization: Bearer psk_…". This one is missing, malformed, unknown, revoked or expired.',
    {},
    { 'www-authenticate': 'Bearer' },
  )
