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
}

/** The keys among these hashes, each in hexadecimal, that are not revoked. */
export async function findLiveKeys(sql: Sql, hashes: string[]): Promise<Map<string, KnownKey>> {
  const rows = await sql<KnownKey & { hash: string }>`
    select hash, id, organisation_id as "organisationId", org, key, expires_at as "expiresAt"
    from find_live_keys(${hashes}::text[])`
  // Rows are matched by the hash that the database returns with them, never by their order.
  return new Map(rows.map(({ hash, ...key }) => [hash, key]))
}

/** Sets when keys were last used, unless a later time is there already. */
export async function markKeysUsed(sql: Sql, lastUses: Map<number, Date>): Promise<void> {
  const sorted = [...lastUses].sort(([a], [b]) => a - b)
  await sql`
    select mark_keys_used(
      ${sorted.map(([id]) => String(id))}::text[]::bigint[],
      ${sorted.map(([, usedAt]) => usedAt.toISOString())}::text[]::timestamptz[]
    )`
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
