import type { Sql } from '../db/client.ts'

export type AuditRow = {
  id: number
  actor: string
  action: string
  subject: string
  details: Record<string, unknown>
  created_at: Date
}

type NewAuditEntry = Omit<AuditRow, 'id' | 'actor' | 'created_at'> & { organisationId: number }

/** Inserts the entries of one change, in their order. */
export async function insertAuditEntries(
  sql: Sql,
  actor: string,
  createdAt: Date,
  entries: NewAuditEntry[],
): Promise<void> {
  await sql`
    insert into audit_log (organisation_id, actor, action, subject, details, created_at)
    select e.organisation_id, ${actor}::text, e.action, e.subject, e.details::jsonb, ${createdAt}::timestamptz
    from unnest(
      ${entries.map(({ organisationId }) => String(organisationId))}::text[]::bigint[],
      ${entries.map(({ action }) => action)}::text[],
      ${entries.map(({ subject }) => subject)}::text[],
      ${entries.map(({ details }) => JSON.stringify(details))}::text[]
    ) with ordinality e (organisation_id, action, subject, details, position)
    order by e.position`
}

/** The newest entries of an organisation that are older than the one of this id. */
export const selectAuditEntries = (
  sql: Sql,
  organisationId: number,
  beforeId: number,
  limit: number,
): Promise<(AuditRow & { rowId: number })[]> =>
  sql<AuditRow & { rowId: number }>`
    select id as "rowId", id, actor, action, subject, details, created_at
    from audit_log
    where organisation_id = ${organisationId} and id < ${beforeId}
    order by id desc
    limit ${limit}`
