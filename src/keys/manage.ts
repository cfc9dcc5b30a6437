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
import { type BrowserTerms, noBrowserTerms, requireBrowserTerms } from './browser.ts'
import { generateKey, hashKey, prefixOfKey } from './format.ts'
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
} & BrowserTerms

type KeyToCreate = { name: string; scopes?: Scope[] | undefined; expiresAt: Date | null; browser?: BrowserTerms }

/** Creates a key for an organisation; its text is returned this once and not stored. */
export async function createKey(
  db: Db,
  clock: Clock,
  { org, ...given }: KeyToCreate & { org: string },
): Promise<NewKey & { key: string }> {
  const { id: organisationId } = await requireOrganisation(db, org)
  return db.transaction((sql) => addKey(sql, clock, { org, organisationId }, given, operator))
}

/** The same within a transaction. Nobody makes a key that can do what they cannot. */
export async function addKey(
  sql: Sql,
  clock: Clock,
  { org, organisationId }: { org: string; organisationId: number },
  { name, scopes = defaultScopes, expiresAt, browser = noBrowserTerms }: KeyToCreate,
  actor: Actor,
): Promise<NewKey & { key: string }> {
  requireGrantable(actor, scopes)
  requireFuture(expiresAt, clock)
  await requireBrowserTerms(sql, organisationId, scopes, browser)
  const given = { name: requireText('name', name), scopes, expiresAt, browser }
  const key = await makeKey(sql, clock, { org, organisationId, ...given })
  await recordAudit(sql, clock, actor, {
    organisationId,
    action: 'key.created',
    subject: key.id,
    details: { name: key.name, scopes, expires_at: expiresAt, ...auditable(browser) },
  })
  return key
}

type KeyToMake = Required<KeyToCreate> & { org: string; organisationId: number; scopes: Scope[] }

async function makeKey(
  sql: Sql,
  clock: Clock,
  { org, organisationId, name, scopes, expiresAt, browser }: KeyToMake,
): Promise<NewKey & { key: string }> {
  const [id, key, createdAt] = [`key_${randomBase62(16)}`, generateKey(), clock.now()]
  const [prefix, hash] = [prefixOfKey(key), hashKey(key)]
  await insertKey(sql, { id, organisationId, name, prefix, hash, scopes, createdAt, expiresAt, ...browser })
  return { id, key, org, name, scopes, expires_at: expiresAt, ...browser }
}

/** The keys of an organisation, newest first. */
export const listKeys = (db: Db, organisationId: number, request: PageRequest): Promise<CursorPage<KeyRow>> =>
  toPage(cursorsOf(db), `keys ${organisationId}`, request, (beforeId, limit) =>
    selectKeys(db.sql, organisationId, beforeId, limit),
  )

export async function showKey(db: Db, id: string, actor: Actor): Promise<KeyRow> {
  requireKeyId(id)
  const { organisationId: _, org: __, ...key } = requireReach(await findKey(db.sql, id), id, actor)
  return key
}

type KeyChange = {
  name?: string | undefined
  scopes?: Scope[] | undefined
  expiresAt?: Date | null | undefined
  browser?: Partial<BrowserTerms>
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
    const key = await holdKey(sql, id, actor)
    if (given.scopes) requireGrantable(actor, given.scopes)
    requireFuture(given.expiresAt ?? null, clock)
    const name = given.name === undefined ? key.name : requireText('name', given.name)
    const { scopes = key.scopes, expiresAt = key.expires_at } = given
    const browser = { ...browserTermsOf(key), ...given.browser }
    await requireBrowserTerms(sql, key.organisationId, scopes, browser)
    await updateKey(sql, id, { name, scopes, expiresAt, ...browser })
    await recordAudit(sql, clock, actor, {
      organisationId: key.organisationId,
      action: 'key.updated',
      subject: id,
      details: { name, scopes, expires_at: expiresAt, ...auditable(browser) },
    })
    return { ...showable(key), name, scopes, expires_at: expiresAt, ...browser }
  }, claimOf(actor))

/** Ends a key at once. Repeated, it changes nothing. */
export const revokeKey = (db: Db, clock: Clock, id: string, actor: Actor = operator): Promise<KeyRow> =>
  db.transaction(async (sql) => {
    const key = await holdKey(sql, id, actor)
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
 * The same within a transaction. The new key has the name, the scopes and the limits of the old one, so nobody gets one
 * by it that can do what they cannot. A key that expires is replaced by one that lives as long.
 */
export async function replaceKey(
  sql: Sql,
  clock: Clock,
  id: string,
  overlapMs: number,
  actor: Actor,
): Promise<NewKey & { key: string }> {
  const old = await holdKey(sql, id, actor)
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
  const made = await makeKey(sql, clock, { ...old, expiresAt, browser: browserTermsOf(old) })
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

type HeldKey = KeyRow & { organisationId: number; org: string }

/** Reads a key and holds it until the transaction ends, so that two changes of it do not cross. */
async function holdKey(sql: Sql, id: string, actor: Actor): Promise<HeldKey> {
  requireKeyId(id)
  await lockKey(sql, id)
  return requireReach(await findKey(sql, id), id, actor)
}

/** A key of another organisation is answered exactly like one that does not exist. */
function requireReach(key: HeldKey | undefined, id: string, actor: Actor): HeldKey {
  const isReached = key && (actor.organisationId === undefined || actor.organisationId === key.organisationId)
  if (!isReached) throw noKey(id)
  return key
}

/** What is no id is not looked up: Postgres takes no text with a zero byte. */
function requireKeyId(id: string): void {
  if (!/^key_[0-9A-Za-z]{1,64}$/.test(id)) throw noKey(id)
}

const noKey = (id: string) => new ServiceError('not_found', `There is no key ${id}.`)

const browserTermsOf = ({ origins, prompts, monthly_limit }: BrowserTerms): BrowserTerms => ({
  origins,
  prompts,
  monthly_limit,
})

/** The entry of a key that is not for browsers does without the nulls. */
const auditable = (browser: BrowserTerms): Partial<BrowserTerms> => (browser.origins ? browser : {})

const showable = ({ organisationId: _, org: __, ...key }: HeldKey): KeyRow => key

function requireGrantable({ scopes: held }: Actor, granted: Scope[]): void {
  const missing = held && granted.find((scope) => !held.includes(scope))
  if (missing) throw forbidden(missing)
}

function requireFuture(expiresAt: Date | null, clock: Clock): void {
  if (expiresAt && expiresAt <= clock.now()) {
    throw invalid('The key would have expired already.', [{ path: '/expires_at', message: 'must be later than now' }])
  }
}
