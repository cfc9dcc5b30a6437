import type { Sql } from '../db/client.ts'
import type { EntryToRecord, KnownEntry, MergedCommit, Reconciliation } from './reconcile.ts'

/** Writes ids as a Postgres array: the driver can send only arrays of texts. */
const idArray = (ids: number[]): string => `{${ids}}`

/** The organisations of prompts whose histories are locked, by the ids of the prompts. */
export type LockedHistories = Map<number, number>

/**
 * Locks histories until the end of the transaction, in the order of their ids, so that no two writers deadlock. A
 * transaction calls this once, with every prompt that it is going to change. Prompts that do not exist are left out.
 */
export async function lockHistories(sql: Sql, promptIds: number[]): Promise<LockedHistories> {
  const rows = await sql<{ id: number; organisation_id: number }>`
    select id, organisation_id
    from prompts
    where id = any (${idArray([...new Set(promptIds)])}::text::bigint[])
    order by id
    for no key update`
  return new Map(rows.map(({ id, organisation_id }) => [id, organisation_id]))
}

/** Adds the entries that are not in their histories yet, in the order given. Returns the ids of the new ones. */
export async function insertEntries(sql: Sql, locked: LockedHistories, entries: EntryToRecord[]): Promise<number[]> {
  const toInsert = entries.map((entry) => ({ ...entry, organisation_id: locked.get(entry.prompt_id) }))
  const added = await sql<Position>`
    insert into history_entries (
      organisation_id, prompt_id, action, user_name, user_email, commit_sha, branch_name, pr_number, pr_url, created_at,
      reopenings, in_git, on_github
    )
    select
      organisation_id, prompt_id, action, user_name, user_email, commit_sha, branch_name, pr_number, pr_url, created_at,
      reopenings, in_git, on_github
    from json_populate_recordset(null::history_entries, ${JSON.stringify(toInsert)}::text::json)
    on conflict do nothing
    returning id, prompt_id, created_at`
  await updateHistories(sql, changesOf(added, 1))
  return added.map(({ id }) => id)
}

/** Selects the entries of commits. */
export async function selectCommitEntries(
  sql: Sql,
  commits: { prompt_id: number; commit_sha: string }[],
): Promise<KnownEntry[]> {
  return sql<KnownEntry>`
    select
      h.id, h.prompt_id, h.action, h.user_name, h.user_email, h.commit_sha, h.branch_name, h.pr_number, h.pr_url,
      h.created_at, h.reopenings, h.in_git, h.on_github
    from (
      select distinct *
      from unnest(
        ${idArray(commits.map(({ prompt_id }) => prompt_id))}::text::bigint[],
        ${commits.map(({ commit_sha }) => commit_sha)}::text[]
      )
    ) c (prompt_id, commit_sha)
    join history_entries h on h.prompt_id = c.prompt_id and h.commit_sha = c.commit_sha`
}

/** Selects those of the entries' commits that belong to a merge on the same branch. */
export async function selectMergedCommits(sql: Sql, entries: EntryToRecord[]): Promise<MergedCommit[]> {
  return sql<MergedCommit>`
    select m.prompt_id, m.branch_name, m.commit_sha, m.pr_number
    from unnest(
      ${idArray(entries.map(({ prompt_id }) => prompt_id))}::text::bigint[],
      ${entries.map(({ branch_name }) => branch_name)}::text[],
      ${entries.map(({ commit_sha }) => commit_sha)}::text[]
    ) c (prompt_id, branch_name, commit_sha)
    join merged_commits m using (prompt_id, branch_name, commit_sha)`
}

/** Writes what was decided. The caller has locked the histories since it read them. */
export async function writeReconciliation(
  sql: Sql,
  locked: LockedHistories,
  { inserts, updates, deletes, mergedCommits }: Reconciliation,
): Promise<void> {
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
    await sql`
      update history_entries h
      set
        action = u.action, user_name = u.user_name, user_email = u.user_email, commit_sha = u.commit_sha,
        branch_name = u.branch_name, pr_number = u.pr_number, pr_url = u.pr_url, created_at = u.created_at,
        in_git = u.in_git, on_github = u.on_github
      from json_populate_recordset(null::history_entries, ${JSON.stringify(updates.map(({ to }) => to))}::text::json) u
      where h.id = u.id`
  }
  const visible = updates.filter(({ isVisible }) => isVisible)
  const removed = [...deletes, ...visible.map(({ from }) => from)]
  const added = visible.map(({ to }) => to)
  await updateHistories(sql, [...changesOf(removed, -1), ...changesOf(added, 1)])
  if (inserts.length > 0) await insertEntries(sql, locked, inserts)
}

/** The place of an entry in a history. */
type Position = { prompt_id: number; created_at: Date; id: number }

/** An entry that was added (1) to a history or removed (-1) from it. */
type Change = Position & { added: 1 | -1 }

const changesOf = (entries: Position[], added: 1 | -1): Change[] =>
  entries.map(({ prompt_id, created_at, id }) => ({ prompt_id, created_at, id, added }))

/** Brings the counts, versions and ranks of the changed histories up to date. */
async function updateHistories(sql: Sql, changes: Change[]): Promise<void> {
  if (changes.length === 0) return
  const byPrompt = [...Map.groupBy(changes, (change) => change.prompt_id)]
  const given = byPrompt.map(([prompt_id, changes]) => ({ prompt_id, changes }))
  await sql`
    select update_history(prompt_id, changes)
    from json_to_recordset(${JSON.stringify(given)}::text::json) g (prompt_id bigint, changes json)`
}
