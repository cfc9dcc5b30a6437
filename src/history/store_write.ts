import type { Sql } from '../db/client.ts'
import type { OwnedPrompt } from '../prompts/find.ts'
import type { EntryToRecord, KnownEntry, Spellings } from './identity.ts'
import type { Reconciliation } from './reconcile.ts'

/** The new entries of a prompt. `isWatched` if its organisation has an endpoint for events. */
export type Inserted = { ids: number[]; isWatched: boolean }

/** A Postgres array, as text. */
const idArray = (ids: number[]): string => `{${ids}}`

/**
 * Locks histories until the end of the transaction, in the order of their ids, so that no two writers deadlock. A
 * transaction that changes several prompts calls this once, with all of them, before it locks any. Returns whether every
 * prompt exists. Prompts found outside of the transaction must have these public ids, because a failover may have lost them.
 */
export async function lockHistories(
  sql: Sql,
  organisationId: number,
  promptIds: number[],
  publicIds?: string[],
): Promise<boolean> {
  const distinct = [...new Set(promptIds)]
  const rows = await sql`
    select
    from prompts
    where organisation_id = ${organisationId} and id = any (${idArray(distinct)}::text::bigint[])
      and (${publicIds ?? null}::text[] is null or public_id = any (${publicIds ?? null}::text[]))
    order by id
    for no key update`
  return rows.length === distinct.length
}

/**
 * Adds entries in the order given, and returns their ids by prompt. Locks the histories before it draws ids, so that
 * entries of the same time keep the order in which they arrived. Fails immediately if another transaction holds one of
 * them, because a waiting transaction would occupy a connection.
 *
 * With `unless`, adds one entry only if its prompt has this public id and no entry that could be of the same commit. The
 * check reads before the lock is held. If the history has changed in between, nothing is added: the caller now has the lock,
 * and tries again.
 */
export async function insertEntries(
  sql: Sql,
  organisationId: number,
  entries: EntryToRecord[],
  unless: (Spellings & { publicId: string }) | null = null,
): Promise<Inserted[]> {
  const promptIds = idArray([...new Set(entries.map(({ prompt_id }) => prompt_id))])
  const { publicId, low, high, start } = unless ?? { publicId: null, low: null, high: null, start: null }
  // The groups are complete before the first call of update_derived_history, so it sees all new entries.
  return sql<Inserted>`
    with locked as materialized (
      select id, organisation_id, live_branch, history_version
      from prompts
      where organisation_id = ${organisationId} and id = any (${promptIds}::text::bigint[])
        and (${publicId}::text is null or public_id = ${publicId}::text)
      order by id
      for no key update nowait
    ), added as (
      insert into history_entries (
        organisation_id, prompt_id, action, user_name, user_email, commit_sha, branch_name, pr_number, pr_url,
        title, created_at, in_git, on_github, by_call, as_given, is_change
      )
      select
        p.organisation_id, e.prompt_id, e.action, e.user_name, e.user_email, e.commit_sha, e.branch_name, e.pr_number,
        e.pr_url, e.title, e.created_at, e.in_git, e.on_github, e.by_call, e.as_given,
        -- Right for most entries; update_derived_history corrects the others.
        e.action in ('deployed', 'pr_merged') and (p.live_branch is null or p.live_branch = e.branch_name)
      from json_populate_recordset(null::history_entries, ${JSON.stringify(entries)}::text::json) with ordinality e
      join locked p on p.id = e.prompt_id
      where ${publicId}::text is null
        or p.history_version = (
          select seen.history_version from prompts seen where seen.organisation_id = p.organisation_id and seen.id = p.id
        )
        and not exists (
          select from history_entries h
          where h.organisation_id = p.organisation_id and h.prompt_id = p.id
            and lower(h.commit_sha) between ${low}::text and ${high}::text
          offset 0
        )
        and not exists (
          select from history_entries h
          where h.organisation_id = p.organisation_id and h.prompt_id = p.id
            and lower(left(h.commit_sha, 7)) = ${start}::text and length(h.commit_sha) not in (40, 64)
            and starts_with(${low}::text, lower(h.commit_sha))
          offset 0
        )
      order by e.ordinality
      returning id, prompt_id, organisation_id, created_at
    )
    select
      json_agg(id order by id) as ids,
      exists (
        select from webhook_endpoints e
        where e.organisation_id = added.organisation_id and e.disabled_at is null
      ) as "isWatched",
      update_derived_history(
        organisation_id, prompt_id, json_agg(json_build_object('created_at', created_at, 'id', id, 'added', 1))
      )
    from added
    group by prompt_id, organisation_id`
}

/** Sets the live branch of those of these prompts that have none. The caller has locked them. */
export async function setLiveBranch(
  sql: Sql,
  organisationId: number,
  promptIds: number[],
  branch: string,
): Promise<void> {
  await sql`
    with changed as (
      update prompts set live_branch = ${branch}
      where organisation_id = ${organisationId} and id = any (${idArray(promptIds)}::text::bigint[]) and live_branch is null
      returning id
    )
    select mark_changes(${organisationId}, id, ${branch}, '-infinity', 'infinity') from changed`
}

/** Notes that sync and the webhook must not bring an entry back. */
export async function insertRemoved(sql: Sql, organisationId: number, entry: KnownEntry): Promise<void> {
  const { prompt_id, commit_sha, action, branch_name, pr_number } = entry
  await sql`
    insert into removed_entries (organisation_id, prompt_id, commit_sha, action, branch_name, pr_number)
    values (
      ${organisationId}, ${prompt_id}, lower(${commit_sha}::text collate "C"), ${action}, ${branch_name}, ${pr_number}
    )
    on conflict do nothing`
}

/** Deletes what is left of a history together with its prompt, which the caller has locked. */
export async function deleteHistory(sql: Sql, { id, organisationId }: OwnedPrompt): Promise<void> {
  await sql`
    with
      entries as (delete from history_entries where organisation_id = ${organisationId} and prompt_id = ${id}),
      merged as (delete from merged_commits where organisation_id = ${organisationId} and prompt_id = ${id}),
      removed as (delete from removed_entries where organisation_id = ${organisationId} and prompt_id = ${id})
    delete from history_ranks where organisation_id = ${organisationId} and prompt_id = ${id}`
}

type Decided = Pick<Reconciliation, 'inserts' | 'updates' | 'deletes' | 'mergedCommits'>

/** Writes what was decided, and returns the new entries. The caller has locked the histories since it read them. */
export async function writeReconciliation(
  sql: Sql,
  organisationId: number,
  { inserts, updates, deletes, mergedCommits }: Decided,
) {
  if (mergedCommits.length > 0) {
    await sql`
      insert into merged_commits
      select ${organisationId}, m.prompt_id, m.branch_name, m.commit_sha, m.merge_sha
      from json_populate_recordset(null::merged_commits, ${JSON.stringify(mergedCommits)}::text::json) m
      on conflict do nothing`
  }
  if (deletes.length > 0) {
    await sql`
      delete from history_entries
      where organisation_id = ${organisationId} and id = any (${idArray(deletes.map(({ id }) => id))}::text::bigint[])`
  }
  if (updates.length > 0) {
    const rows = updates.map(({ to }) => to)
    // The ids make Postgres expect few rows. For only a JSON array it would scan the table.
    await sql`
      update history_entries h
      set
        action = u.action, user_name = u.user_name, user_email = u.user_email, commit_sha = u.commit_sha,
        branch_name = u.branch_name, pr_number = u.pr_number, pr_url = u.pr_url, title = u.title,
        created_at = u.created_at, in_git = u.in_git, on_github = u.on_github, by_call = u.by_call, as_given = u.as_given
      from json_populate_recordset(null::history_entries, ${JSON.stringify(rows)}::text::json) u
      where h.organisation_id = ${organisationId} and h.id = u.id
        and h.id = any (${idArray(rows.map(({ id }) => id))}::text::bigint[])`
  }
  const visible = updates.filter(({ isVisible }) => isVisible)
  const removed = [...deletes, ...visible.map(({ from }) => from)].map((entry) => ({ ...entry, added: -1 }))
  const added = visible.map(({ to }) => ({ ...to, added: 1 }))
  const changes = [...removed, ...added]
  if (changes.length > 0) {
    await sql`
      select update_derived_history(${organisationId}, c.prompt_id, json_agg(c))
      from json_to_recordset(${JSON.stringify(changes)}::text::json)
        c (prompt_id bigint, created_at timestamptz, id bigint, added integer)
      group by c.prompt_id`
  }
  return inserts.length > 0 ? insertEntries(sql, organisationId, inserts) : []
}
