import type { Sql } from '../db/client.ts'

export type EntryRow = {
  id: number
  action: 'deployed' | 'pr_opened' | 'pr_merged' | 'pr_closed'
  user_name: string
  user_email: string
  commit_sha: string
  branch_name: string
  pr_number: number | null
  pr_url: string | null
  created_at: Date
}

type PageRow = { [Column in keyof EntryRow]: EntryRow[Column] | null } & { total_count: number }

/** One page and the total, from one snapshot; undefined when the organisation has no such prompt. */
export async function selectPage(
  sql: Sql,
  organisationId: number,
  publicId: string,
  page: { number: number; size: number },
): Promise<{ entries: EntryRow[]; totalCount: number } | undefined> {
  const rows = await sql<PageRow>`
    select
      p.history_count as total_count, h.id, h.action, h.user_name, h.user_email, h.commit_sha,
      h.branch_name, h.pr_number, h.pr_url, h.created_at
    from prompts p
    left join history_entries h on h.prompt_id = p.id
      and h.seq <= p.history_count - (${page.number}::bigint - 1) * ${page.size}::bigint
      and h.seq > p.history_count - ${page.number}::bigint * ${page.size}::bigint
    where p.public_id = ${publicId} and p.organisation_id = ${organisationId}
    order by h.seq desc`
  if (!rows[0]) return undefined
  return { totalCount: rows[0].total_count, entries: rows.filter((row) => row.id !== null) as EntryRow[] }
}

export type EntryToRecord = Omit<EntryRow, 'id'> & { prompt_id: number }

/** The ids of the new entries, in the order given. */
export async function insertEntries(sql: Sql, entries: EntryToRecord[]): Promise<number[]> {
  const rows = await sql<{ id: number }>`
    select entry_id as id from record_history(${JSON.stringify(entries)}::text::jsonb) order by item`
  return rows.map(({ id }) => id)
}
