import type { Db } from '../db/client.ts'
import { notFound } from '../errors.ts'
import { isPromptId } from '../prompts/find.ts'
import type { HistoryEntry } from './schema.ts'
import { type EntryRow, selectPage } from './store.ts'

/** The page as asked for: of any size, since it is shown again in the answer. */
export type Paging = { page: bigint; limit: number }

export type HistoryList = { entries: HistoryEntry[]; totalCount: number; totalPages: number }

/** Far beyond any last page, and still within what Postgres multiplies by a page size. */
const lastConceivablePage = 10n ** 15n

export async function listHistory(
  db: Db,
  organisationId: number,
  promptId: string,
  { page, limit }: Paging,
): Promise<HistoryList> {
  const number = Number(page < lastConceivablePage ? page : lastConceivablePage)
  const found = isPromptId(promptId)
    ? await selectPage(db.sql, organisationId, promptId, { number, size: limit })
    : undefined
  if (!found) throw notFound()
  return {
    entries: found.entries.map(showEntry),
    totalCount: found.totalCount,
    totalPages: Math.ceil(found.totalCount / limit),
  }
}

export const showEntry = (row: EntryRow): HistoryEntry => ({
  id: row.id,
  action: row.action,
  user: { name: row.user_name, email: row.user_email },
  commit_sha: row.commit_sha,
  pr_number: row.pr_number,
  pr_url: row.pr_url,
  branch_name: row.branch_name,
  created_at: row.created_at.toISOString(),
})
