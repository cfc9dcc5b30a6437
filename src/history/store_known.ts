// Reads what is known of reported commits.
import type { Sql } from '../db/client.ts'
import type { EntryIdentity, KnownEntry, LiveEntry, Spellings } from './identity.ts'
import type { MergedCommit } from './reconcile.ts'

/** The driver can send only arrays of strings. */
const promptIdsOf = (rows: { prompt_id: number }[]): string[] => rows.map(({ prompt_id }) => String(prompt_id))

// `offset 0` makes Postgres search by commit, even if the table was small when it was last analysed.

/**
 * Selects the entries of these commits, by any spelling. If a short hash with the same first seven characters is stored,
 * selects all entries with that start: it may fit several. Otherwise not, because there may be many.
 */
export const selectCommitEntries = (
  sql: Sql,
  organisationId: number,
  commits: (Spellings & { prompt_id: number })[],
): Promise<KnownEntry[]> =>
  sql<KnownEntry>`
    select distinct on (h.id) h.*
    from (
      select distinct
        c.prompt_id, case when has_short then c.start else c.low end, case when has_short then c.start || 'g' else c.high end
      from unnest(
        ${promptIdsOf(commits)}::text[]::bigint[], ${commits.map(({ low }) => low)}::text[],
        ${commits.map(({ high }) => high)}::text[], ${commits.map(({ start }) => start)}::text[]
      ) c (prompt_id, low, high, start)
      cross join lateral (
        select exists (
          select from history_entries h
          where h.organisation_id = ${organisationId} and h.prompt_id = c.prompt_id
            and lower(left(h.commit_sha, 7)) = c.start and length(h.commit_sha) not in (40, 64)
          offset 0
        ) as has_short
        offset 0
      ) known
    ) c (prompt_id, low, high)
    cross join lateral (
      select * from history_rows h
      where h.organisation_id = ${organisationId} and h.prompt_id = c.prompt_id
        and lower(h.commit_sha) between c.low and c.high
      offset 0
    ) h
    order by h.id`

/** For each entry, selects the nearest entries of other commits that went live on its branch, before and after it. */
export const selectLiveNeighbours = (
  sql: Sql,
  organisationId: number,
  entries: (Omit<LiveEntry, 'id'> & { spellings: string[] })[],
  liveActions: string[],
) =>
  // No commit has a line break.
  sql<LiveEntry>`
    select n.id, e.prompt_id, n.branch_name, n.commit_sha, n.created_at
    from unnest(
      ${promptIdsOf(entries)}::text[]::bigint[], ${entries.map(({ branch_name }) => branch_name)}::text[],
      ${entries.map(({ created_at }) => created_at.toISOString())}::text[]::timestamptz[],
      ${entries.map(({ spellings }) => spellings.join('\n'))}::text[]
    ) e (prompt_id, branch_name, created_at, spellings)
    cross join lateral live_neighbours(
      ${organisationId}, e.prompt_id, e.branch_name, ${liveActions}::text[], e.created_at, 9223372036854775807,
      string_to_array(e.spellings, chr(10))
    ) n`

/** Selects those of the entries' commits that belong to a merge on the same branch. */
export const selectMergedCommits = (sql: Sql, organisationId: number, entries: EntryIdentity[]) =>
  sql<MergedCommit>`
    select m.*
    from unnest(
      ${promptIdsOf(entries)}::text[]::bigint[], ${entries.map(({ branch_name }) => branch_name)}::text[],
      ${entries.map(({ commit_sha }) => commit_sha)}::text[]
    ) c (prompt_id, branch_name, commit_sha)
    cross join lateral (
      select * from merged_commits m
      where m.organisation_id = ${organisationId} and m.prompt_id = c.prompt_id and m.branch_name = c.branch_name
        and m.commit_sha = lower(c.commit_sha collate "C")
      offset 0
    ) m`

/** Selects the identities of removed entries of the same commits. */
export const selectRemoved = (sql: Sql, organisationId: number, entries: EntryIdentity[]) =>
  sql<EntryIdentity>`
    select r.*
    from (
      select distinct c.prompt_id, lower(c.commit_sha collate "C") as commit_sha
      from unnest(
        ${promptIdsOf(entries)}::text[]::bigint[], ${entries.map(({ commit_sha }) => commit_sha)}::text[]
      ) c (prompt_id, commit_sha)
    ) c
    cross join lateral (
      select * from removed_entries r
      where r.organisation_id = ${organisationId} and r.prompt_id = c.prompt_id and r.commit_sha = c.commit_sha
      offset 0
    ) r`
