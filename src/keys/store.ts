import type { Sql } from '../db/client.ts'

export type KeyRow = {
  id: string
  name: string
  prefix: string
  created_at: Date
  expires_at: Date | null
  last_used_at: Date | null
  revoked_at: Date | null
}

/** What a request needs to know of its key. */
export type KnownKey = {
  id: number
  organisationId: number
  /** Public ids. */
  org: string
  key: string
  expiresAt: Date | null
  lastUsedAt: Date | null
}

export async function findLiveKeyByHash(sql: Sql, hash: Buffer): Promise<KnownKey | undefined> {
  const [row] = await sql<KnownKey>`
    select k.id, k.organisation_id as "organisationId", o.public_id as org, k.public_id as key,
      k.expires_at as "expiresAt", k.last_used_at as "lastUsedAt"
    from api_keys k join organisations o on o.id = k.organisation_id
    where k.hash = ${hash} and k.revoked_at is null`
  return row
}

export async function markKeyUsed(sql: Sql, id: number, at: Date): Promise<void> {
  await sql`update api_keys set last_used_at = ${at} where id = ${id}`
}

export async function insertKey(
  sql: Sql,
  key: {
    id: string
    organisationId: number
    name: string
    prefix: string
    hash: Buffer
    createdAt: Date
    expiresAt: Date | null
  },
): Promise<void> {
  await sql`
    insert into api_keys (public_id, organisation_id, name, prefix, hash, created_at, expires_at)
    values (
      ${key.id}, ${key.organisationId}, ${key.name}, ${key.prefix}, ${key.hash},
      ${key.createdAt}, ${key.expiresAt}
    )`
}

export const selectKeys = (sql: Sql, organisationId: number): Promise<KeyRow[]> =>
  sql<KeyRow>`
    select public_id as id, name, prefix, created_at, expires_at, last_used_at, revoked_at
    from api_keys
    where organisation_id = ${organisationId}
    order by api_keys.id`

/** Keeps the time of the first revocation when it is repeated. */
export async function revokeKeyById(sql: Sql, id: string, at: Date): Promise<KeyRow | undefined> {
  const [row] = await sql<KeyRow>`
    update api_keys
    set revoked_at = coalesce(revoked_at, ${at})
    where public_id = ${id}
    returning public_id as id, name, prefix, created_at, expires_at, last_used_at, revoked_at`
  return row
}
