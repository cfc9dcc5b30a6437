import type { Db } from '../db/client.ts'
import { type PageRequest, readPage } from '../lib/cursor_page.ts'
import type { AuditRow } from './schema.ts'
import { selectAuditEntries } from './store.ts'

/** A page of an organisation's audit log, newest first. */
export const listAudit = (db: Db, organisationId: number, request: PageRequest) =>
  readPage<AuditRow>(`audit ${organisationId}`, request, (beforeId, limit) =>
    selectAuditEntries(db.sql, organisationId, beforeId, limit),
  )
