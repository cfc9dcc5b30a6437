import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { ServiceError } from '../errors.ts'
import { randomBase62 } from '../lib/base62.ts'
import { requireText } from '../lib/texts.ts'
import { requireOrganisation } from '../orgs/manage.ts'
import { generateKey, hashKey, prefixOfKey } from './format.ts'
import { insertKey, type KeyRow, revokeKeyById, selectKeys } from './store.ts'

/** Creates a key; its text is returned this once and not stored. */
export async function createKey(
  db: Db,
  clock: Clock,
  given: { org: string; name: string; expiresAt: Date | null },
): Promise<{ id: string; key: string; org: string; name: string; expires_at: Date | null }> {
  const organisation = await requireOrganisation(db, given.org)
  const createdAt = clock.now()
  if (given.expiresAt && given.expiresAt <= createdAt) {
    throw new ServiceError('validation_error', 'The key would expire before it is made: give a later time.')
  }
  const id = `key_${randomBase62(16)}`
  const key = generateKey()
  const name = requireText('name', given.name)
  await insertKey(db.sql, {
    id,
    organisationId: organisation.id,
    name,
    prefix: prefixOfKey(key),
    hash: hashKey(key),
    createdAt,
    expiresAt: given.expiresAt,
  })
  return { id, key, org: given.org, name, expires_at: given.expiresAt }
}

export async function listKeys(db: Db, org: string): Promise<KeyRow[]> {
  const { id } = await requireOrganisation(db, org)
  return selectKeys(db.sql, id)
}

export async function revokeKey(db: Db, clock: Clock, id: string): Promise<KeyRow> {
  const key = await revokeKeyById(db.sql, id, clock.now())
  if (!key) throw new ServiceError('not_found', `There is no key ${id}.`)
  return key
}
