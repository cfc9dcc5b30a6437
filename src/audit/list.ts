import type { Db } from '../db/client.ts'
import { type CursorPage, decodeCursor, encodeCursor, type PageRequest } from '../lib/cursor_page.ts'
import { type AuditRow, selectAuditEntries } from './store.ts'

/** A page of an organisation's audit log, newest first. */
export async function listAudit(
  db: Db,
  organisationId: number,
  { limit, cursor }: PageRequest,
): Promise<CursorPage<AuditRow>> {
  const beforeId = cursor === null ? Number.MAX_SAFE_INTEGER : decodeCursor(cursor)
  // One more than asked for shows whether there is a next page.
  const rows = await selectAuditEntries(db.sql, organisationId, beforeId, limit + 1)
  const data = rows.slice(0, limit)
  return { data, limit, nextCursor: rows.length > limit ? encodeCursor(data.at(-1)?.id as number) : null }
}
