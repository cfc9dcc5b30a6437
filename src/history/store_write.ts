import type { Sql } from '../db/client.ts'
import type { EntryToRecord, KnownEntry, MergedCommit, Reconciliation } from './reconcile.ts'

/** The driver can send only arrays of strings. */
const idArray = (ids: number[]): string => `{${ids}}`

/**
 * Locks histories until the end of the transaction, in the order of their ids, so that no two writers deadlock. A
 * transaction that changes several prompts calls this once, with all of them. Returns whether every prompt exists.
 */
export async function lockHistories(sql: Sql, promptIds: number[]): Promise<boolean> {
  const distinct = [...new Set(promptIds)]
  const rows = await sql`
    select
    from prompts
    where id = any (${idArray(distinct)}::text::bigint[])
    order by id
    for no key update`
  return rows.length === distinct.length
}

/**
 * Adds the entries that are not in their histories yet, in the order given. Returns the ids of the new ones. Locks the
 * histories before it draws ids, so that entries of the same time keep the order in which they arrived. Fails immediately
 * when another transaction holds one of them: a waiting transaction would keep a connection from others.
 */
export async function insertEntries(sql: Sql, entries: EntryToRecord[]): Promise<number[]> {
  const promptIds = new Set(entries.map(({ prompt_id }) => prompt_id))
  // The groups are complete before the first call of update_history, so it sees all new entries.
  const changed = await sql<{ ids: number[] }>`
    with locked as materialized (
      select id, organisation_id
      from prompts
      where id = any (${idArray([...promptIds])}::text::bigint[])
      order by id
      for no key update nowait
    ), added as (
      insert into history_entries (
        organisation_id, prompt_id, action, user_name, user_email, commit_sha, branch_name, pr_number, pr_url,
        title, created_at, reopenings, in_git, on_github
      )
      select
        p.organisation_id, e.prompt_id, e.action, e.user_name, e.user_email, e.commit_sha, e.branch_name, e.pr_number,
        e.pr_url, e.title, e.created_at, e.reopenings, e.in_git, e.on_github
      from json_populate_recordset(null::history_entries, ${JSON.stringify(entries)}::text::json) with ordinality e
      join locked p on p.id = e.prompt_id
      order by e.ordinality
      on conflict do nothing
      returning id, prompt_id, created_at
    )
    select
      json_agg(id) as ids,
      update_history(prompt_id, json_agg(json_build_object('created_at', created_at, 'id', id, 'added', 1)))
    from added
    group by prompt_id`
  return changed.flatMap(({ ids }) => ids)
}

export const selectCommitEntries = (sql: Sql, commits: { prompt_id: number; commit_sha: string }[]) =>
  sql<KnownEntry>`
    select
      h.id, h.prompt_id, h.action, h.user_name, h.user_email, h.commit_sha, h.branch_name, h.pr_number, h.pr_url,
      h.title, h.created_at, h.reopenings, h.in_git, h.on_github
    from (
      select distinct *
      from unnest(
        ${idArray(commits.map(({ prompt_id }) => prompt_id))}::text::bigint[],
        ${commits.map(({ commit_sha }) => commit_sha)}::text[]
      )
    ) c (prompt_id, commit_sha)
    join history_entries h on h.prompt_id = c.prompt_id and h.commit_sha = c.commit_sha`

/** Selects those of the entries' commits that belong to a merge on the same branch. */
export const selectMergedCommits = (sql: Sql, entries: EntryToRecord[]) =>
  sql<MergedCommit>`
    select m.prompt_id, m.branch_name, m.commit_sha, m.pr_number
    from unnest(
      ${idArray(entries.map(({ prompt_id }) => prompt_id))}::text::bigint[],
      ${entries.map(({ branch_name }) => branch_name)}::text[],
      ${entries.map(({ commit_sha }) => commit_sha)}::text[]
    ) c (prompt_id, branch_name, commit_sha)
    join merged_commits m using (prompt_id, branch_name, commit_sha)`

/** Writes what was decided. The caller has locked the histories since it read them. */
export async function writeReconciliation(sql: Sql, { inserts, updates, deletes, mergedCommits }: Reconciliation) {
  if (mergedCommits.length > 0) {
    await sql`
      insert into merged_commits
      select * from json_populate_recordset(null::merged_commits, ${JSON.stringify(mergedCommits)}::text::json)
      on conflict do nothing`
  }
  // Deleted first: an entry may take over the identity of another.
  if (deletes.length > 0) {
    await sql`delete from history_entries where id = any (${idArray(deletes.map(({ id }) => id))}::text::bigint[])`
  }
  if (updates.length > 0) {
    const rows = updates.map(({ to }) => to)
    // The ids make Postgres expect few rows: for a JSON array alone it would scan the table.
    await sql`
      update history_entries h
      set
        action = u.action, user_name = u.user_name, user_email = u.user_email, commit_sha = u.commit_sha,
        branch_name = u.branch_name, pr_number = u.pr_number, pr_url = u.pr_url, title = u.title,
        created_at = u.created_at, in_git = u.in_git, on_github = u.on_github
      from json_populate_recordset(null::history_entries, ${JSON.stringify(rows)}::text::json) u
      where h.id = u.id and h.id = any (${idArray(rows.map(({ id }) => id))}::text::bigint[])`
  }
  const visible = updates.filter(({ isVisible }) => isVisible)
  const removed = [...deletes, ...visible.map(({ from }) => from)].map((entry) => ({ ...entry, added: -1 }))
  const added = visible.map(({ to }) => ({ ...to, added: 1 }))
  const changes = JSON.stringify([...removed, ...added])
  await sql`
    select update_history(c.prompt_id, json_agg(c))
    from json_to_recordset(${changes}::text::json) c (prompt_id bigint, created_at timestamptz, id bigint, added integer)
    group by c.prompt_id`
  if (inserts.length > 0) await insertEntries(sql, inserts)
}
