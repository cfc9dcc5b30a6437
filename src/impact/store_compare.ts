import type { Sql } from '../db/client.ts'
import type { EntryRow } from '../history/schema.ts'
import type { OwnedPrompt } from '../prompts/find.ts'

/** The name of a commit, in lower case, that a history entry or a signal has. */
export type KnownCommit = { name: string; is_entry: boolean }

/**
 * Selects the commits of a prompt's history and signals whose first 7 characters are one of `begins`. Clients may make up any
 * number, so at most `limit` per beginning are read from the rollups.
 */
export const selectKnownCommits = (sql: Sql, { id, organisationId }: OwnedPrompt, begins: string[], limit: number) =>
  sql<KnownCommit>`
    select name, bool_or(is_entry) as is_entry
    from (
      select lower(h.commit_sha) as name, true as is_entry
      from unnest(${begins}::text[]) given (begin)
      cross join lateral (
        select h.commit_sha
        from history_entries h
        where h.organisation_id = ${organisationId} and h.prompt_id = ${id}
          and lower(h.commit_sha) >= given.begin and lower(h.commit_sha) < given.begin || chr(1114111)
        -- Makes Postgres search by commit, even if its statistics say that the table is small.
        offset 0
      ) h
      union all
      select c.commit_sha, false
      from unnest(${begins}::text[]) given (begin)
      cross join lateral (
        select distinct c.commit_sha
        from signal_commit_counts c
        where c.organisation_id = ${organisationId} and c.prompt_id = ${id} and c.minutes = 1440
          and c.commit_sha >= given.begin and c.commit_sha < given.begin || chr(1114111)
        order by c.commit_sha
        limit ${limit}
      ) c
      union all
      select commit_of_signal(s.metadata), false
      from signals s
      where s.organisation_id = ${organisationId} and s.prompt_id = ${id}
        and left(commit_of_signal(s.metadata), 7) = any(${begins}::text[])
        -- The upper bound excludes nothing. It tells the planner that few signals are above the watermark.
        and s.id between (
          select coalesce(max(w.last_rolled_up_id), 0) + 1 from signal_watermarks w
          where w.organisation_id = ${organisationId} and w.prompt_id = ${id}
        ) and 9223372036854775807
    ) known
    group by name`

/** Selects the newest history entry with one of these commits in lower case. Prefers entries that went live. */
export async function selectEntryOfCommit(
  sql: Sql,
  { id, organisationId }: OwnedPrompt,
  commits: string[],
  liveActions: string[],
): Promise<EntryRow | undefined> {
  const [entry] = await sql<EntryRow>`
    select h.*
    from history_rows h
    where h.organisation_id = ${organisationId} and h.prompt_id = ${id}
      and lower(h.commit_sha) = any(${commits}::text[])
    order by h.action = any(${liveActions}::text[]) desc, h.created_at desc, h.id desc
    limit 1`
  return entry
}
