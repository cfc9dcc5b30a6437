import { type Actor, operator, permitRequestOf, recordAudit } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { forbidden, invalid, ServiceError } from '../errors.ts'
import type { Scope } from '../http/caller.ts'
import { randomBase62 } from '../lib/base62.ts'
import { type PageRequest, readPage } from '../lib/cursor_page.ts'
import { requireText } from '../lib/texts.ts'
import { earlierOf, latestInstant } from '../lib/times.ts'
import { requireOrganisation } from '../orgs/manage.ts'
import { generateKey, hashKey, prefixOfKey } from './format.ts'
import { requireRestrictions } from './restrictions.ts'
import type { KeyRestrictions, KeyRow, NewKey } from './schema.ts'
import { defaultScopes } from './scopes.ts'
import {
  findCountedWith,
  findKey,
  insertKey,
  type KeyValues,
  lockKey,
  type OwnedKey,
  selectKeys,
  setReplaced,
  setRevoked,
  shareLimit,
  updateKey,
} from './store.ts'

/** What is given of a key that is to be changed; what is undefined stays as it is. */
type KeyChange = { [Name in keyof KeyRestrictions]?: KeyRestrictions[Name] | undefined } & {
  name?: string | undefined
  scopes?: Scope[] | undefined
  expiresAt?: Date | null | undefined
}

type KeyToCreate = KeyChange & { name: string; expiresAt: Date | null }

type Owner = { org: string; organisationId: number }

/** Who looks for a key. What is not bound to an organisation finds any. */
type Viewer = Pick<Actor, 'organisationId'>

/** Creates a key for an organisation; its text is returned this once and not stored. */
export async function createKey(db: Db, clock: Clock, given: KeyToCreate & { org: string }): Promise<NewKey> {
  const { org } = given
  const { id: organisationId } = await requireOrganisation(db, org)
  return db.transaction((sql) => addKey(sql, clock, { org, organisationId }, given, operator))
}

/** Creates a key within the caller's transaction. Nobody makes a key that can do what they cannot. */
export async function addKey(
  sql: Sql,
  clock: Clock,
  owner: Owner,
  { name, scopes = defaultScopes, expiresAt, origins = null, prompts = null, monthly_limit = null }: KeyToCreate,
  actor: Actor,
): Promise<NewKey> {
  const { organisationId } = owner
  requireGrantable(actor, scopes)
  requireFuture(expiresAt, clock)
  const values = { name: requireText('name', name), scopes, expires_at: expiresAt, origins, prompts, monthly_limit }
  await requireRestrictions(sql, organisationId, values)
  const key = await makeKey(sql, clock, owner, values)
  const details = auditable(values)
  await recordAudit(sql, clock, actor, { organisationId, action: 'key.created', subject: key.id, details })
  return key
}

async function makeKey(sql: Sql, clock: Clock, { org, organisationId }: Owner, values: KeyValues): Promise<NewKey> {
  const [id, key, createdAt] = [`key_${randomBase62(16)}`, generateKey(), clock.now()]
  const [prefix, hash] = [prefixOfKey(key), hashKey(key)]
  await insertKey(sql, { id, organisationId, prefix, hash, createdAt, ...values })
  return { id, key, org, ...values }
}

/** The keys of an organisation, newest first. */
export const listKeys = (db: Db, organisationId: number, request: PageRequest) =>
  readPage<KeyRow>(`keys ${organisationId}`, request, (beforeId, limit) =>
    selectKeys(db.sql, organisationId, beforeId, limit),
  )

export const showKey = async (db: Db, id: string, viewer: Viewer): Promise<KeyRow> =>
  showable(await requireKey(db.sql, id, viewer))

/** Changes what is given of a key, and leaves the rest. */
export const changeKey = (db: Db, clock: Clock, id: string, given: KeyChange, actor = operator): Promise<KeyRow> =>
  db.transaction(async (sql) => {
    const key = await requireKey(sql, id, actor, lockKey)
    requireFuture(given.expiresAt ?? null, clock)
    const { name = key.name, scopes = key.scopes, expiresAt = key.expires_at } = given
    const { origins = key.origins, prompts = key.prompts, monthly_limit = key.monthly_limit } = given
    const changesRestrictions = [given.origins, given.prompts, given.monthly_limit].some((value) => value !== undefined)
    // Who lets a key live longer grants its scopes for that time, as to one that has expired, and so does who changes its
    // restrictions, which may be to lift them.
    if (given.scopes || changesRestrictions || isLater(expiresAt, key.expires_at)) requireGrantable(actor, scopes)
    const values = { name: requireText('name', name), scopes, expires_at: expiresAt, origins, prompts, monthly_limit }
    const { organisationId } = key
    await requireRestrictions(sql, organisationId, values)
    const dependent = key.origins && !origins ? await findCountedWith(sql, id) : undefined
    if (dependent) throw isCountedWith(dependent)
    await updateKey(sql, id, values)
    const sharing = monthly_limit === key.monthly_limit ? [] : await shareLimit(sql, id)
    const updated = { organisationId, action: 'key.updated' } as const
    const shared = sharing.map((other) => ({ ...updated, subject: other.id, details: { monthly_limit } }))
    await recordAudit(sql, clock, actor, ...shared, {
      ...updated,
      subject: id,
      details: key.origins ? values : auditable(values),
    })
    return { ...showable(key), ...values }
  }, permitRequestOf(actor))

/** Ends a key at once. Repeated, it changes nothing. */
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

/** Makes a key in the place of another, which works until the overlap ends. */
export const rotateKey = (db: Db, clock: Clock, id: string, overlapMs: number): Promise<NewKey> =>
  db.transaction((sql) => replaceKey(sql, clock, id, overlapMs, operator))

/**
 * Rotates a key within the caller's transaction. The new key has the name, the scopes and the limits of the old one, so
 * nobody gets one by it that can do what they cannot. A key that expires is replaced by one that lives as long.
 */
export async function replaceKey(sql: Sql, clock: Clock, id: string, overlapMs: number, actor: Actor): Promise<NewKey> {
  const old = await requireKey(sql, id, actor, lockKey)
  const { organisationId, name, scopes, created_at, expires_at, origins, prompts, monthly_limit } = old
  requireGrantable(actor, scopes)
  const now = clock.now()
  if (old.replaced_by) {
    throw invalid(`The key ${id} was rotated to ${old.replaced_by} already.`, [
      { path: '', message: 'must be a key that was not rotated before' },
    ])
  }
  if (old.revoked_at || (expires_at && expires_at <= now)) {
    throw invalid(`The key ${id} has ended: make a new one instead.`, [
      { path: '', message: 'must be a key that still works' },
    ])
  }
  const livesUntil = expires_at && now.getTime() + expires_at.getTime() - created_at.getTime()
  const expiresAt = livesUntil === null ? null : new Date(Math.min(livesUntil, latestInstant))
  const made = await makeKey(sql, clock, old, { name, scopes, expires_at: expiresAt, origins, prompts, monthly_limit })
  const overlapEndsAt = new Date(now.getTime() + overlapMs)
  const endsAt = expires_at ? earlierOf(expires_at, overlapEndsAt) : overlapEndsAt
  await setReplaced(sql, id, made.id, endsAt)
  const details = { replaced_by: made.id, ends_at: endsAt }
  await recordAudit(sql, clock, actor, { organisationId, action: 'key.rotated', subject: id, details })
  return made
}

/**
 * Reads a key, which may be locked first until the transaction ends. A key of another organisation is answered exactly
 * like one that does not exist.
 */
async function requireKey(sql: Sql, id: string, viewer: Viewer, lock?: typeof lockKey): Promise<OwnedKey> {
  // What is no id is not looked up: Postgres takes no text with a zero byte.
  const isId = /^key_[0-9A-Za-z]{1,64}$/.test(id)
  if (isId) await lock?.(sql, id)
  const key = isId ? await findKey(sql, id) : undefined
  const isVisible = key && (viewer.organisationId === undefined || viewer.organisationId === key.organisationId)
  if (!isVisible) throw new ServiceError('not_found', `There is no key ${id}.`)
  return key
}

/** The audit entry of a key without restrictions leaves their nulls out. */
const auditable = ({ name, scopes, expires_at, ...restrictions }: KeyValues): Partial<KeyValues> => ({
  name,
  scopes,
  expires_at,
  ...(restrictions.origins ? restrictions : {}),
})

const showable = ({ organisationId: _, org: __, ...key }: OwnedKey): KeyRow => key

function requireGrantable({ scopes: held }: Actor, granted: Scope[]): void {
  const missing = held && granted.find((scope) => !held.includes(scope))
  if (missing) throw forbidden(missing)
}

/** The limit of a browser key holds for those that it was rotated to, so it must go on having one. */
const isCountedWith = (dependent: string) =>
  invalid(`The signals of ${dependent} are counted with this key.`, [
    { path: '/origins', message: 'must be given while other keys are counted with this one' },
  ])

/** Compares two expiries, of which null is never. */
const isLater = (expiresAt: Date | null, than: Date | null): boolean =>
  than !== null && (expiresAt === null || expiresAt > than)

function requireFuture(expiresAt: Date | null, clock: Clock): void {
  if (expiresAt && expiresAt <= clock.now()) {
    throw invalid('The key would have expired already.', [{ path: '/expires_at', message: 'must be later than now' }])
  }
}
