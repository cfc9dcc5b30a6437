import type { Sql } from '../db/client.ts'

export type AuditRow = {
  id: number
  actor: string
  action: string
  subject: string
  details: Record<string, unknown>
  created_at: Date
}

export async function insertAuditEntry(
  sql: Sql,
  entry: Omit<AuditRow, 'id' | 'created_at'> & { organisationId: number; createdAt: Date },
): Promise<void> {
  await sql`
    insert into audit_log (organisation_id, actor, action, subject, details, created_at)
    values (
      ${entry.organisationId}, ${entry.actor}, ${entry.action}, ${entry.subject},
      ${JSON.stringify(entry.details)}::text::jsonb, ${entry.createdAt}
    )`
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
