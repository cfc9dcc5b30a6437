import { type Actor, claimOf, operator, recordAudit } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { forbidden, invalid, ServiceError } from '../errors.ts'
import { randomBase62 } from '../lib/base62.ts'
import { type CursorPage, type PageRequest, toPage } from '../lib/cursor_page.ts'
import { requireText } from '../lib/texts.ts'
import { latestInstant } from '../lib/times.ts'
import { requireOrganisation } from '../orgs/manage.ts'
import { cursorsOf } from '../requests/cursors.ts'
import { generateKey, hashKey, prefixOfKey } from './format.ts'
import { type KeyRestrictions, requireRestrictions, unrestricted } from './restrictions.ts'
import type { Scope } from './schema.ts'
import { defaultScopes } from './scopes.ts'
import { findKey, insertKey, type KeyRow, lockKey, selectKeys, setReplaced, setRevoked, updateKey } from './store.ts'

/** A key as it is shown this once, with its text; null where that was shown before. */
export type NewKey = {
  id: string
  key: string | null
  org: string
  name: string
  scopes: Scope[]
  expires_at: Date | null
} & KeyRestrictions

type KeyToCreate = {
  name: string
  scopes?: Scope[] | undefined
  expiresAt: Date | null
  restrictions?: KeyRestrictions
}

/** Creates a key for an organisation; its text is returned this once and not stored. */
export async function createKey(
  db: Db,
  clock: Clock,
  { org, ...given }: KeyToCreate & { org: string },
): Promise<NewKey & { key: string }> {
  const { id: organisationId } = await requireOrganisation(db, org)
  return db.transaction((sql) => addKey(sql, clock, { org, organisationId }, given, operator))
}

/** Creates a key within the caller's transaction. Nobody makes a key that can do what they cannot. */
export async function addKey(
  sql: Sql,
  clock: Clock,
  { org, organisationId }: { org: string; organisationId: number },
  { name, scopes = defaultScopes, expiresAt, restrictions = unrestricted }: KeyToCreate,
  actor: Actor,
): Promise<NewKey & { key: string }> {
  requireGrantable(actor, scopes)
  requireFuture(expiresAt, clock)
  await requireRestrictions(sql, organisationId, scopes, restrictions)
  const given = { name: requireText('name', name), scopes, expiresAt, restrictions }
  const key = await makeKey(sql, clock, { org, organisationId, ...given })
  await recordAudit(sql, clock, actor, {
    organisationId,
    action: 'key.created',
    subject: key.id,
    details: { name: key.name, scopes, expires_at: expiresAt, ...auditable(restrictions) },
  })
  return key
}

type KeyToMake = Required<KeyToCreate> & { org: string; organisationId: number; scopes: Scope[] }

async function makeKey(
  sql: Sql,
  clock: Clock,
  { org, organisationId, name, scopes, expiresAt, restrictions }: KeyToMake,
): Promise<NewKey & { key: string }> {
  const [id, key, createdAt] = [`key_${randomBase62(16)}`, generateKey(), clock.now()]
  const [prefix, hash] = [prefixOfKey(key), hashKey(key)]
  await insertKey(sql, { id, organisationId, name, prefix, hash, scopes, createdAt, expiresAt, ...restrictions })
  return { id, key, org, name, scopes, expires_at: expiresAt, ...restrictions }
}

/** The keys of an organisation, newest first. */
export const listKeys = (db: Db, organisationId: number, request: PageRequest): Promise<CursorPage<KeyRow>> =>
  toPage(cursorsOf(db), `keys ${organisationId}`, request, (beforeId, limit) =>
    selectKeys(db.sql, organisationId, beforeId, limit),
  )

export async function showKey(db: Db, id: string, actor: Actor): Promise<KeyRow> {
  requireKeyId(id)
  return showable(requireVisible(await findKey(db.sql, id), id, actor))
}

type KeyChange = {
  name?: string | undefined
  scopes?: Scope[] | undefined
  expiresAt?: Date | null | undefined
  restrictions?: Partial<KeyRestrictions>
}

/** Changes what is given of a key, and leaves the rest. */
export const changeKey = (
  db: Db,
  clock: Clock,
  id: string,
  given: KeyChange,
  actor: Actor = operator,
): Promise<KeyRow> =>
  db.transaction(async (sql) => {
    const key = await readLockedKey(sql, id, actor)
    if (given.scopes) requireGrantable(actor, given.scopes)
    requireFuture(given.expiresAt ?? null, clock)
    const name = given.name === undefined ? key.name : requireText('name', given.name)
    const { scopes = key.scopes, expiresAt = key.expires_at } = given
    const restrictions = { ...restrictionsOf(key), ...given.restrictions }
    await requireRestrictions(sql, key.organisationId, scopes, restrictions)
    await updateKey(sql, id, { name, scopes, expiresAt, ...restrictions })
    await recordAudit(sql, clock, actor, {
      organisationId: key.organisationId,
      action: 'key.updated',
      subject: id,
      details: { name, scopes, expires_at: expiresAt, ...auditable(restrictions) },
    })
    return { ...showable(key), name, scopes, expires_at: expiresAt, ...restrictions }
  }, claimOf(actor))

/** Ends a key at once. Repeated, it changes nothing. */
export const revokeKey = (db: Db, clock: Clock, id: string, actor: Actor = operator): Promise<KeyRow> =>
  db.transaction(async (sql) => {
    const key = await readLockedKey(sql, id, actor)
    if (key.revoked_at) return showable(key)
    const revokedAt = clock.now()
    await setRevoked(sql, id, revokedAt)
    const { organisationId } = key
    await recordAudit(sql, clock, actor, { organisationId, action: 'key.revoked', subject: id })
    return { ...showable(key), revoked_at: revokedAt }
  }, claimOf(actor))

/** Makes a key in the place of another, which works until the overlap ends. */
export const rotateKey = (db: Db, clock: Clock, id: string, overlapMs: number): Promise<NewKey & { key: string }> =>
  db.transaction((sql) => replaceKey(sql, clock, id, overlapMs, operator))

/**
 * Rotates a key within the caller's transaction. The new key has the name, the scopes and the limits of the old one, so
 * nobody gets one by it that can do what they cannot. A key that expires is replaced by one that lives as long.
 */
export async function replaceKey(
  sql: Sql,
  clock: Clock,
  id: string,
  overlapMs: number,
  actor: Actor,
): Promise<NewKey & { key: string }> {
  const old = await readLockedKey(sql, id, actor)
  requireGrantable(actor, old.scopes)
  const now = clock.now()
  if (old.replaced_by) {
    throw invalid(`The key ${id} was rotated to ${old.replaced_by} already.`, [
      { path: '', message: 'must be a key that was not rotated before' },
    ])
  }
  if (old.revoked_at || (old.expires_at && old.expires_at <= now)) {
    throw invalid(`The key ${id} has ended: make a new one instead.`, [
      { path: '', message: 'must be a key that still works' },
    ])
  }
  const lifeMs = old.expires_at && old.expires_at.getTime() - old.created_at.getTime()
  const expiresAt = lifeMs === null ? null : new Date(Math.min(now.getTime() + lifeMs, latestInstant))
  const made = await makeKey(sql, clock, { ...old, expiresAt, restrictions: restrictionsOf(old) })
  const overlapEndsAt = new Date(now.getTime() + overlapMs)
  const endsAt = old.expires_at && old.expires_at < overlapEndsAt ? old.expires_at : overlapEndsAt
  await setReplaced(sql, id, made.id, endsAt)
  await recordAudit(sql, clock, actor, {
    organisationId: old.organisationId,
    action: 'key.rotated',
    subject: id,
    details: { replaced_by: made.id, ends_at: endsAt },
  })
  return made
}

type LockedKey = KeyRow & { organisationId: number; org: string }

/** Locks a key until the transaction ends, and reads it. */
async function readLockedKey(sql: Sql, id: string, actor: Actor): Promise<LockedKey> {
  requireKeyId(id)
  await lockKey(sql, id)
  return requireVisible(await findKey(sql, id), id, actor)
}

/** A key of another organisation is answered exactly like one that does not exist. */
function requireVisible(key: LockedKey | undefined, id: string, actor: Actor): LockedKey {
  const isVisible = key && (actor.organisationId === undefined || actor.organisationId === key.organisationId)
  if (!isVisible) throw noKey(id)
  return key
}

/** What is no id is not looked up: Postgres takes no text with a zero byte. */
function requireKeyId(id: string): void {
  if (!/^key_[0-9A-Za-z]{1,64}$/.test(id)) throw noKey(id)
}

const noKey = (id: string) => new ServiceError('not_found', `There is no key ${id}.`)

const restrictionsOf = ({ origins, prompts, monthly_limit }: KeyRestrictions): KeyRestrictions => ({
  origins,
  prompts,
  monthly_limit,
})

/** The audit entry of a key without restrictions leaves their nulls out. */
const auditable = (restrictions: KeyRestrictions): Partial<KeyRestrictions> =>
  restrictions.origins ? restrictions : {}

const showable = ({ organisationId: _, org: __, ...key }: LockedKey): KeyRow => key

function requireGrantable({ scopes: held }: Actor, granted: Scope[]): void {
  const missing = held && granted.find((scope) => !held.includes(scope))
  if (missing) throw forbidden(missing)
}

function requireFuture(expiresAt: Date | null, clock: Clock): void {
  if (expiresAt && expiresAt <= clock.now()) {
    throw invalid('The key would have expired already.', [{ path: '/expires_at', message: 'must be later than now' }])
  }
}
