import type { Sql } from '../db/client.ts'
import type { IdempotentRequest } from '../http/idempotency.ts'

/** Claims the key; false when another request has it. Waits for one in flight. */
export async function claimKey(sql: Sql, request: IdempotentRequest, at: Date): Promise<boolean> {
  const rows = await sql`
    insert into idempotent_requests (organisation_id, key, fingerprint, created_at)
    values (${request.organisationId}, ${request.key}, ${request.fingerprint}, ${at})
    on conflict do nothing
    returning 1`
  return rows.length > 0
}

export async function keepAnswer(sql: Sql, { organisationId, key }: IdempotentRequest, answer: object): Promise<void> {
  await sql`
    update idempotent_requests set answer = ${JSON.stringify(answer)}::text::jsonb
    where organisation_id = ${organisationId} and key = ${key}`
}

/** The answer kept for the key, unless it was given to another request. */
export async function findAnswer(sql: Sql, request: IdempotentRequest): Promise<object | undefined> {
  const [row] = await sql<{ answer: object }>`
    select answer from idempotent_requests
    where organisation_id = ${request.organisationId} and key = ${request.key}
      and fingerprint = ${request.fingerprint}`
  return row?.answer
}
