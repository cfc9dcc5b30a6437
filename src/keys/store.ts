import type { Sql } from '../db/client.ts'
import type { Caller } from './caller.ts'
import type { KeyRow } from './schema.ts'

export type KeyValues = Pick<KeyRow, 'name' | 'scopes' | 'expires_at' | 'origins' | 'prompts' | 'monthly_limit'>

/** A key with the ids of its organisation, and the key that it is counted with: itself unless a rotation created it. */
export type OwnedKey = KeyRow & { organisationId: number; org: string; countedWith: number }

/** The keys among these hashes, each in hexadecimal, that are neither revoked nor of a suspended organisation. */
export async function findLiveKeys(sql: Sql, hashes: string[]): Promise<Map<string, Caller>> {
  const rows = await sql<Caller & { hash: string }>`
    select
      wanted.hash, k.id, k.organisation_id as "organisationId", o.public_id as org, k.public_id as key,
      to_json(k.scopes) as scopes, k.expires_at as "expiresAt",
      case when k.origins is not null then
        json_build_object(
          'origins', k.origins, 'prompts', k.prompts, 'monthlyLimit', k.monthly_limit,
          'countedWith', coalesce(k.counted_with, k.id)
        )
      end as browser
    from unnest(${hashes}::text[]) wanted (hash)
    join api_keys k on k.hash = decode(wanted.hash, 'hex')
    join organisations o on o.id = k.organisation_id
    where k.revoked_at is null and o.suspended_at is null`
  // Rows are matched by the hash that the database returns with them, never by their order.
  return new Map(rows.map(({ hash, ...key }) => [hash, key]))
}

/** Keeps a later time. Locks the rows in the order of their ids, so that two replicas never deadlock. */
export async function markKeysUsed(sql: Sql, lastUses: Map<string, Date>): Promise<void> {
  await sql`
    with used as (
      select k.public_id, u.used_at
      from unnest(
        ${[...lastUses.keys()]}::text[],
        ${[...lastUses.values()].map((usedAt) => usedAt.toISOString())}::text[]::timestamptz[]
      ) u (public_id, used_at)
      join api_keys k on k.public_id = u.public_id
      where k.last_used_at is null or k.last_used_at < u.used_at
      order by k.id
      for update of k
    )
    update api_keys k set last_used_at = u.used_at from used u where k.public_id = u.public_id`
}

export async function insertKey(
  sql: Sql,
  key: KeyValues & { id: string; organisationId: number; prefix: string; hash: Buffer; createdAt: Date },
  countedWith: number | null,
): Promise<void> {
  await sql`
    insert into api_keys (
      public_id, organisation_id, name, prefix, hash, scopes, created_at, expires_at, origins, prompts, monthly_limit,
      counted_with
    )
    values (
      ${key.id}, ${key.organisationId}, ${key.name}, ${key.prefix}, ${key.hash}, ${key.scopes}::text[],
      ${key.createdAt}, ${key.expires_at}, ${key.origins}::text[], ${key.prompts}::text[],
      ${key.monthly_limit}, ${countedWith}
    )`
}

export const selectKeys = (sql: Sql, organisationId: number, beforeId: number, limit: number) =>
  sql<KeyRow & { rowId: number }>`
    select
      k.id as "rowId", k.public_id as id, k.name, k.prefix, to_json(k.scopes) as scopes, k.created_at, k.expires_at,
      k.last_used_at, k.revoked_at, (
        select r.public_id from api_keys r where r.organisation_id = k.organisation_id and r.id = k.replaced_by
      ) as replaced_by,
      to_json(k.origins) as origins, to_json(k.prompts) as prompts, k.monthly_limit
    from api_keys k
    where k.organisation_id = ${organisationId} and k.id < ${beforeId}
    order by k.id desc
    limit ${limit}`

export async function findKey(sql: Sql, id: string): Promise<OwnedKey | undefined> {
  const [row] = await sql<OwnedKey>`
    select
      k.organisation_id as "organisationId", o.public_id as org, coalesce(k.counted_with, k.id) as "countedWith",
      k.public_id as id, k.name, k.prefix, to_json(k.scopes) as scopes, k.created_at, k.expires_at, k.last_used_at,
      k.revoked_at, (
        select r.public_id from api_keys r where r.organisation_id = k.organisation_id and r.id = k.replaced_by
      ) as replaced_by,
      to_json(k.origins) as origins, to_json(k.prompts) as prompts, k.monthly_limit
    from api_keys k
    join organisations o on o.id = k.organisation_id
    where k.public_id = ${id}`
  return row
}

export async function lockKey(sql: Sql, id: string): Promise<void> {
  await sql`select from api_keys where public_id = ${id} for update`
}

export async function updateKey(sql: Sql, id: string, key: KeyValues): Promise<void> {
  await sql`
    update api_keys
    set
      name = ${key.name}, scopes = ${key.scopes}::text[], expires_at = ${key.expires_at},
      origins = ${key.origins}::text[], prompts = ${key.prompts}::text[], monthly_limit = ${key.monthly_limit}
    where public_id = ${id}`
}

export async function setRevoked(sql: Sql, id: string, at: Date): Promise<void> {
  await sql`update api_keys set revoked_at = ${at} where public_id = ${id}`
}

export async function setReplaced(sql: Sql, id: string, replacement: string, endsAt: Date): Promise<void> {
  await sql`
    update api_keys
    set expires_at = ${endsAt}, replaced_by = (select r.id from api_keys r where r.public_id = ${replacement})
    where public_id = ${id}`
}
