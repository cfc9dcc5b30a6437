import type { Sql } from '../db/client.ts'
import type { AuditEvent, AuditRow } from './schema.ts'

export async function insertAuditEntries(sql: Sql, actor: string, at: Date, events: AuditEvent[]): Promise<void> {
  await sql`
    insert into audit_log (organisation_id, actor, action, subject, details, created_at)
    select e.organisation_id, ${actor}::text, e.action, e.subject, e.details::jsonb, ${at}::timestamptz
    from unnest(
      ${events.map(({ organisationId }) => String(organisationId))}::text[]::bigint[],
      ${events.map(({ action }) => action)}::text[],
      ${events.map(({ subject }) => subject)}::text[],
      ${events.map(({ details = {} }) => JSON.stringify(details))}::text[]
    ) with ordinality e (organisation_id, action, subject, details, position)
    order by e.position`
}

export const selectAuditEntries = (sql: Sql, organisationId: number, beforeId: number, limit: number) =>
  sql<AuditRow & { rowId: number }>`
    select a.id as "rowId", a.id, a.actor, k.name as actor_name, a.action, a.subject,
      coalesce(changed.name, p.name) as subject_name, a.details, a.created_at
    from audit_log a
    left join api_keys k on k.public_id = a.actor and k.organisation_id = a.organisation_id
    left join api_keys changed on changed.public_id = a.subject and changed.organisation_id = a.organisation_id
    left join prompts p on p.public_id = a.subject collate "C" and p.organisation_id = a.organisation_id
    where a.organisation_id = ${organisationId} and a.id < ${beforeId}
    order by a.id desc
    limit ${limit}`
