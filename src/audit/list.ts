import type { Db } from '../db/client.ts'
import { type PageRequest, toPage } from '../lib/cursor_page.ts'
import { cursorsOf } from '../requests/cursors.ts'
import type { AuditRow } from './schema.ts'
import { selectAuditEntries } from './store.ts'

/** A page of an organisation's audit log, newest first. */
export const listAudit = (db: Db, organisationId: number, request: PageRequest) =>
  toPage<AuditRow>(cursorsOf(db), `audit ${organisationId}`, request, (beforeId, limit) =>
    selectAuditEntries(db.sql, organisationId, beforeId, limit),
  )
