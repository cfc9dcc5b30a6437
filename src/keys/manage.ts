import { type Actor, operator, recordAudit } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { ServiceError } from '../errors.ts'
import { randomBase62 } from '../lib/base62.ts'
import { type CursorPage, decodeCursor, encodeCursor, type PageRequest } from '../lib/cursor_page.ts'
import { requireText } from '../lib/texts.ts'
import { requireOrganisation } from '../orgs/manage.ts'
import { generateKey, hashKey, prefixOfKey } from './format.ts'
import { defaultScopes, type Scope } from './scopes.ts'
import { findKey, insertKey, type KeyRow, lockKey, selectKeys, setReplaced, setRevoked, updateKey } from './store.ts'

/** A key as it is shown this once, with its text. */
export type NewKey = {
  id: string
  key: string
  org: string
  name: string
  scopes: Scope[]
  expires_at: Date | null
}

type KeyToMake = { org: string; name: string; scopes?: Scope[]; expiresAt: Date | null }

/** Makes a key; this is the only time its text is known. */
export async function createKey(db: Db, clock: Clock, given: KeyToMake, actor: Actor = operator): Promise<NewKey> {
  const { id: organisationId } = await requireOrganisation(db, given.org)
  requireFuture(given.expiresAt, clock)
  return db.transaction(async (sql) => {
    const key = await makeKey(sql, clock, organisationId, given)
    await recordAudit(sql, clock, actor, {
      organisationId,
      action: 'key.created',
      subject: key.id,
      details: { name: key.name, scopes: key.scopes, expires_at: key.expires_at },
    })
    return key
  })
}

async function makeKey(sql: Sql, clock: Clock, organisationId: number, given: KeyToMake): Promise<NewKey> {
  const { org, scopes = defaultScopes, expiresAt } = given
  const [id, key, name] = [`key_${randomBase62(16)}`, generateKey(), requireText('name', given.name)]
  const [prefix, hash, createdAt] = [prefixOfKey(key), hashKey(key), clock.now()]
  await insertKey(sql, { id, organisationId, name, prefix, hash, scopes, createdAt, expiresAt })
  return { id, key, org, name, scopes, expires_at: expiresAt }
}

/** The keys of an organisation, newest first. */
export async function listKeys(db: Db, organisationId: number, page: PageRequest): Promise<CursorPage<KeyRow>> {
  const beforeId = page.cursor === null ? Number.MAX_SAFE_INTEGER : decodeCursor(page.cursor)
  const rows = await selectKeys(db.sql, organisationId, beforeId, page.limit + 1)
  const shown = rows.slice(0, page.limit)
  const nextCursor = rows.length > page.limit ? encodeCursor(shown.at(-1)?.rowId as number) : null
  return { data: shown.map(({ rowId: _, ...key }) => key), limit: page.limit, nextCursor }
}

/** Changes what is given of a key, and leaves the rest. */
export function changeKey(
  db: Db,
  clock: Clock,
  id: string,
  given: { name?: string; scopes?: Scope[]; expiresAt?: Date | null },
  actor: Actor = operator,
): Promise<KeyRow> {
  requireFuture(given.expiresAt ?? null, clock)
  return onKey(db, id, async (sql, key) => {
    const name = given.name === undefined ? key.name : requireText('name', given.name)
    const scopes = given.scopes ?? key.scopes
    const expiresAt = given.expiresAt === undefined ? key.expires_at : given.expiresAt
    await updateKey(sql, id, { name, scopes, expiresAt })
    await recordAudit(sql, clock, actor, {
      organisationId: key.organisationId,
      action: 'key.updated',
      subject: id,
      details: { name, scopes, expires_at: expiresAt },
    })
  })
}

/** Ends a key at once. Repeated, it changes nothing. */
export const revokeKey = (db: Db, clock: Clock, id: string, actor: Actor = operator): Promise<KeyRow> =>
  onKey(db, id, async (sql, { organisationId, revoked_at: revokedAt }) => {
    if (revokedAt) return
    await setRevoked(sql, id, clock.now())
    await recordAudit(sql, clock, actor, { organisationId, action: 'key.revoked', subject: id })
  })

/**
 * Makes a key in the place of another, with its name and scopes. The old one works until the overlap ends, so that
 * callers can change over without a gap. A key that expires is replaced by one that lives as long.
 */
export async function rotateKey(
  db: Db,
  clock: Clock,
  id: string,
  overlapMs: number,
  actor: Actor = operator,
): Promise<NewKey> {
  let made: NewKey | undefined
  await onKey(db, id, async (sql, old) => {
    const now = clock.now()
    if (old.revoked_at || (old.expires_at && old.expires_at <= now)) {
      throw new ServiceError('validation_error', `The key ${id} has ended: make a new one instead.`)
    }
    if (old.replaced_by) {
      throw new ServiceError('validation_error', `The key ${id} was rotated to ${old.replaced_by} already.`)
    }
    const lifeMs = old.expires_at && old.expires_at.getTime() - old.created_at.getTime()
    const expiresAt = lifeMs === null ? null : new Date(now.getTime() + lifeMs)
    made = await makeKey(sql, clock, old.organisationId, {
      org: old.org,
      name: old.name,
      scopes: old.scopes,
      expiresAt,
    })
    const overlapEndsAt = new Date(now.getTime() + overlapMs)
    const endsAt = old.expires_at && old.expires_at < overlapEndsAt ? old.expires_at : overlapEndsAt
    await setReplaced(sql, id, made.id, endsAt)
    await recordAudit(sql, clock, actor, {
      organisationId: old.organisationId,
      action: 'key.rotated',
      subject: id,
      details: { replaced_by: made.id, ends_at: endsAt },
    })
  })
  return made as NewKey
}

type LockedKey = KeyRow & { organisationId: number; org: string }

/** Does the work in a transaction that holds the key, and returns the key as it is afterwards. */
function onKey(db: Db, id: string, work: (sql: Sql, key: LockedKey) => Promise<void>): Promise<KeyRow> {
  return db.transaction(async (sql) => {
    await lockKey(sql, id)
    const key = await findKey(sql, id)
    if (!key) throw new ServiceError('not_found', `There is no key ${id}.`)
    await work(sql, key)
    const { organisationId: _, org: __, ...changed } = (await findKey(sql, id)) as LockedKey
    return changed
  })
}

function requireFuture(expiresAt: Date | null, clock: Clock): void {
  if (expiresAt && expiresAt <= clock.now()) {
    throw new ServiceError('validation_error', 'The key would have expired already: give a later time.')
  }
}
