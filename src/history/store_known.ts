// Reads what is known of the reported commits.
import type { Sql } from '../db/client.ts'
import type { OwnedPrompt } from '../prompts/find.ts'
import type { EntryIdentity, KnownEntry, LiveEntry, Spellings } from './identity.ts'
import type { MergedCommit } from './reconcile.ts'
import type { EntryRow } from './schema.ts'

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
    select distinct on (h.id)
      h.id, h.prompt_id, h.action, h.user_name, h.user_email, h.commit_sha, h.branch_name, h.pr_number, h.pr_url,
      h.title, h.created_at, h.in_git, h.on_github, h.by_call, h.as_given
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
      select * from history_entries h
      where h.organisation_id = ${organisationId} and h.prompt_id = c.prompt_id
        and lower(h.commit_sha) between c.low and c.high
      offset 0
    ) h
    order by h.id`

/** The entry of a prompt with this id. */
export async function selectEntry(sql: Sql, prompt: OwnedPrompt, id: number): Promise<KnownEntry | undefined> {
  const [row] = await sql<KnownEntry>`
    select * from history_entries
    where id = ${id} and organisation_id = ${prompt.organisationId} and prompt_id = ${prompt.id}`
  return row
}

export const selectNewestEntries = (sql: Sql, { id, organisationId }: OwnedPrompt, limit: number) =>
  sql<KnownEntry>`
    select * from history_entries
    where organisation_id = ${organisationId} and prompt_id = ${id}
    order by created_at desc, id desc
    limit ${limit}`

/** For each entry, selects the nearest entries of other commits that went live on its branch, before and after it. */
export const selectLiveNeighbours = (
  sql: Sql,
  organisationId: number,
  entries: (Omit<LiveEntry, 'id'> & { spellings: string[] })[],
) =>
  // No commit has a line break.
  sql<LiveEntry>`
    select n.*
    from unnest(
      ${promptIdsOf(entries)}::text[]::bigint[], ${entries.map(({ branch_name }) => branch_name)}::text[],
      ${entries.map(({ created_at }) => created_at.toISOString())}::text[]::timestamptz[],
      ${entries.map(({ spellings }) => spellings.join('\n'))}::text[]
    ) e (prompt_id, branch_name, created_at, spellings)
    cross join lateral (
      (
        select h.id, h.prompt_id, h.branch_name, h.commit_sha, h.created_at
        from history_entries h
        where h.organisation_id = ${organisationId} and h.prompt_id = e.prompt_id and h.branch_name = e.branch_name
          and h.action in ('deployed', 'pr_merged') and lower(h.commit_sha) <> all (string_to_array(e.spellings, chr(10))) and h.created_at <= e.created_at
        order by h.created_at desc, h.id desc
        limit 1
      )
      union all
      (
        select h.id, h.prompt_id, h.branch_name, h.commit_sha, h.created_at
        from history_entries h
        where h.organisation_id = ${organisationId} and h.prompt_id = e.prompt_id and h.branch_name = e.branch_name
          and h.action in ('deployed', 'pr_merged') and lower(h.commit_sha) <> all (string_to_array(e.spellings, chr(10))) and h.created_at > e.created_at
        order by h.created_at, h.id
        limit 1
      )
    ) n`

/** Selects those of the entries' commits that belong to a merge on the same branch. */
export const selectMergedCommits = (sql: Sql, organisationId: number, entries: EntryIdentity[]) =>
  sql<MergedCommit>`
    select m.prompt_id, m.branch_name, m.commit_sha
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

/**
 * Selects the given entries since `since` that no later change has replaced, unless the prompt is archived. For entries
 * since `overtakenSince`, only later changes among the given ones count: another may have been reported first.
 */
export async function selectLiveChanges(
  sql: Sql,
  organisationId: number,
  ids: number[],
  since: Date,
  overtakenSince: Date,
) {
  const rows = await sql<EntryRow & { promptId: string; promptName: string }>`
    select
      h.id, h.action, h.user_name, h.user_email, h.commit_sha, h.branch_name, h.pr_number, h.pr_url, h.title,
      h.created_at, p.public_id as "promptId", p.name as "promptName"
    from history_entries h
    join prompts p on p.organisation_id = h.organisation_id and p.id = h.prompt_id
    where h.organisation_id = ${organisationId} and h.id = any (${`{${ids}}`}::text::bigint[]) and h.is_change
      and h.created_at >= ${since} and not p.archived
      and not exists (
        select from history_changes later
        where later.organisation_id = h.organisation_id and later.prompt_id = h.prompt_id
          and (later.created_at, later.id) > (h.created_at, h.id)
          and (h.created_at < ${overtakenSince} or later.id = any (${`{${ids}}`}::text::bigint[]))
      )`
  return rows.map(({ promptId: id, promptName: name, ...entry }) => ({ prompt: { id, name }, entry }))
}
