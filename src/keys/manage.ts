import { type Actor, operator, permitRequestOf, recordAudit, requireOwn, type Viewer } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { invalid } from '../errors.ts'
import { randomBase62 } from '../lib/base62.ts'
import { type PageRequest, readPage } from '../lib/cursor_page.ts'
import { defaultScopes } from '../lib/scopes.ts'
import { requireName } from '../lib/texts.ts'
import { earlierOf, lastStorableInstant } from '../lib/times.ts'
import type { Owner } from '../orgs/manage.ts'
import {
  isLater,
  type KeyChange,
  type KeyToCreate,
  requireFuture,
  requireGrantable,
  requireLifeWithin,
  requireRestrictions,
  scopesAfter,
} from './given.ts'
import type { KeyRow, NewKey } from './schema.ts'
import {
  findKey,
  insertKey,
  type KeyValues,
  lockKey,
  type OwnedKey,
  selectKeys,
  setReplaced,
  setRevoked,
  updateKey,
} from './store.ts'
import { generateKey, hashKey, prefixOfKey } from './verify.ts'

/** Creates a key for an organisation. Its text is returned only here and not stored. */
export const createKey = (
  db: Db,
  clock: Clock,
  owner: Owner,
  {
    name,
    scopes = defaultScopes,
    expires_at = null,
    origins = null,
    prompts = null,
    monthly_limit = null,
  }: KeyToCreate,
  actor = operator,
): Promise<NewKey> =>
  db.transaction(async (sql) => {
    const { organisationId } = owner
    requireGrantable(actor, scopes)
    requireFuture(expires_at, clock)
    requireLifeWithin(actor, expires_at)
    const values = { name: requireName(name), scopes, expires_at, origins, prompts, monthly_limit }
    await requireRestrictions(sql, organisationId, values)
    const key = await insertNewKey(sql, clock, owner, values)
    await recordAudit(sql, clock, actor, { organisationId, action: 'key.created', subject: key.id, details: values })
    return key
  }, permitRequestOf(actor))

async function insertNewKey(
  sql: Sql,
  clock: Clock,
  { org, organisationId }: Owner,
  values: KeyValues,
  countedWith: number | null = null,
): Promise<NewKey> {
  const [id, key, createdAt] = [`key_${randomBase62(16)}`, generateKey(), clock.now()]
  const [prefix, hash] = [prefixOfKey(key), hashKey(key)]
  await insertKey(sql, { id, organisationId, prefix, hash, createdAt, ...values }, countedWith)
  return { id, key, org, ...values }
}

export const listKeys = (db: Db, organisationId: number, request: PageRequest) =>
  readPage<KeyRow>(`keys ${organisationId}`, request, (beforeId, limit) =>
    selectKeys(db.sql, organisationId, beforeId, limit),
  )

export const showKey = async (db: Db, id: string, viewer: Viewer): Promise<KeyRow> =>
  showable(await requireKey(db.sql, id, viewer))

export const changeKey = (db: Db, clock: Clock, id: string, given: KeyChange, actor = operator): Promise<KeyRow> =>
  db.transaction(async (sql) => {
    const key = await requireKey(sql, id, actor, lockKey)
    requireFuture(given.expires_at ?? null, clock)
    const { name = key.name, expires_at = key.expires_at } = given
    const scopes = scopesAfter(given, key.scopes)
    const { origins = key.origins, prompts = key.prompts, monthly_limit = key.monthly_limit } = given
    const changesRestrictions = [given.origins, given.prompts, given.monthly_limit].some((value) => value !== undefined)
    const isExtended = isLater(expires_at, key.expires_at)
    if (isExtended && key.replaced_by) throw staysEnded(key.replaced_by)
    // Extending a key's life or changing its restrictions grants its scopes again, so the actor must hold them.
    const changesScopes = given.scopes ?? given.add_scopes ?? given.remove_scopes
    if (changesScopes || changesRestrictions || isExtended) requireGrantable(actor, scopes)
    const isWidened = changesRestrictions || isExtended || scopes.some((scope) => !key.scopes.includes(scope))
    if (isWidened) requireLifeWithin(actor, expires_at)
    const values = { name: requireName(name), scopes, expires_at, origins, prompts, monthly_limit }
    const { organisationId } = key
    await requireRestrictions(sql, organisationId, values, given.prompts ?? null)
    await updateKey(sql, id, values)
    await recordAudit(sql, clock, actor, { organisationId, action: 'key.updated', subject: id, details: values })
    return { ...showable(key), ...values }
  }, permitRequestOf(actor))

/** Revokes a key. Revoking it again changes nothing. */
export const revokeKey = (db: Db, clock: Clock, id: string, actor = operator): Promise<KeyRow> =>
  db.transaction(async (sql) => {
    const key = await requireKey(sql, id, actor, lockKey)
    if (key.revoked_at) return showable(key)
    const revokedAt = clock.now()
    await setRevoked(sql, id, revokedAt)
    const { organisationId } = key
    await recordAudit(sql, clock, actor, { organisationId, action: 'key.revoked', subject: id })
    return { ...showable(key), revoked_at: revokedAt }
  }, permitRequestOf(actor))

/**
 * Creates a key that replaces another, which works until the overlap ends. The new key has the name, the scopes and the
 * limits of the old one, and the same lifetime if that one expires, but no longer than the actor's own.
 */
export const rotateKey = (db: Db, clock: Clock, id: string, overlapMs: number, actor: Actor): Promise<NewKey> =>
  db.transaction(async (sql) => {
    const old = await requireKey(sql, id, actor, lockKey)
    const { organisationId, name, scopes, created_at, expires_at, origins, prompts, monthly_limit } = old
    requireGrantable(actor, scopes)
    requireLifeWithin(actor, expires_at)
    const now = clock.now()
    const reject = (problem: string, message: string) => invalid(`The key ${id} ${problem}`, [{ path: '', message }])
    if (old.replaced_by) {
      throw reject(`was rotated to ${old.replaced_by} already.`, 'must be a key that was not rotated before')
    }
    if (old.revoked_at || (expires_at && expires_at <= now)) {
      throw reject('has ended: create a new one instead.', 'must be a key that still works')
    }
    const livesUntil = expires_at && now.getTime() + expires_at.getTime() - created_at.getTime()
    const latest = actor.expiresAt?.getTime() ?? lastStorableInstant
    const expiresAt = livesUntil === null ? null : new Date(Math.min(livesUntil, latest))
    const values = { name, scopes, expires_at: expiresAt, origins, prompts, monthly_limit }
    // A browser key shares its count with its replacement: a rotation makes no room.
    const made = await insertNewKey(sql, clock, old, values, origins && old.countedWith)
    const overlapEndsAt = new Date(now.getTime() + overlapMs)
    const endsAt = expires_at ? earlierOf(expires_at, overlapEndsAt) : overlapEndsAt
    await setReplaced(sql, id, made.id, endsAt)
    const details = { replaced_by: made.id, ends_at: endsAt }
    await recordAudit(sql, clock, actor, { organisationId, action: 'key.rotated', subject: id, details })
    return made
  }, permitRequestOf(actor))

const staysEnded = (replacedBy: string) =>
  invalid(`The key was rotated to ${replacedBy}, and ends as that rotation said.`, [
    { path: '/expires_at', message: 'must not be later than it is' },
  ])

export const requireKey = (sql: Sql, id: string, viewer: Viewer, lock?: typeof lockKey): Promise<OwnedKey> =>
  requireOwn('key', id, viewer, async () => {
    await lock?.(sql, id)
    return findKey(sql, id)
  })

const showable = ({ organisationId: _, org: __, countedWith: ___, ...key }: OwnedKey): KeyRow => key
