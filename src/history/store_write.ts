// Locks histories, and writes what was decided.
import type { Sql } from '../db/client.ts'
import type { PlacedEntry } from './changes.ts'
import type { EntryToRecord, Spellings } from './identity.ts'
import type { Reconciliation } from './reconcile.ts'

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
    where organisation_id = ${organisationId} and id = any (${distinct.map(String)}::text[]::bigint[])
      and (${publicIds ?? null}::text[] is null or public_id = any (${publicIds ?? null}::text[]))
    order by id
    for no key update`
  return rows.length === distinct.length
}

/** What is live just before and after the entries that were written to a history. */
export type Surroundings = {
  promptId: number
  around: {
    live_branch: string | null
    near: (Omit<PlacedEntry, 'created_at'> & { created_at: string; is_after: boolean })[]
  }
}

/** The new entries of a prompt. `isWatched` if its organisation has an endpoint for events. */
type Inserted = Surroundings & { ids: number[]; isWatched: boolean }

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
  entries: (EntryToRecord & { is_change: boolean })[],
  liveActions: string[],
  unless: (Spellings & { publicId: string }) | null = null,
): Promise<Inserted[]> {
  const promptIds = [...new Set(entries.map(({ prompt_id }) => String(prompt_id)))]
  const rows = entries.map((entry, id) => ({ ...entry, organisation_id: organisationId, id }))
  const { publicId, low, high, start } = unless ?? { publicId: null, low: null, high: null, start: null }
  // The groups are complete before the first call of update_history_counts, so it sees all new entries.
  return sql<Inserted>`
    with locked as materialized (
      select id, organisation_id, history_version, repository, path
      from prompts
      where organisation_id = ${organisationId} and id = any (${promptIds}::text[]::bigint[])
        and (${publicId}::text is null or public_id = ${publicId}::text)
      order by id
      for no key update nowait
    ), added as (
      -- The given ids only order the entries.
      insert into history_entries overriding user value
      select placed.*
      from json_populate_recordset(null::history_entries, ${JSON.stringify(rows)}::text::json) e
      join locked p on p.id = e.prompt_id
      cross join lateral json_populate_record(
        e,
        case
          when e.in_git or e.on_github then json_build_object('repository', p.repository, 'path', p.path)
          else '{}'
        end
      ) placed
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
      order by e.id
      returning id, prompt_id, organisation_id, created_at
    )
    select
      prompt_id as "promptId", json_agg(id order by id) as ids,
      exists (
        select from webhook_endpoints e
        where e.organisation_id = added.organisation_id and e.disabled_at is null
      ) as "isWatched",
      update_history_counts(
        organisation_id, prompt_id, json_agg(json_build_object('created_at', created_at, 'id', id, 'added', 1)),
        ${liveActions}::text[]
      ) as around
    from added
    group by prompt_id, organisation_id`
}

/** A place in a history where an entry was added (1) or removed (-1). */
export type CountedPlace = { prompt_id: number; created_at: Date; id: number; added: 1 | -1 }

export const countPlaces = (sql: Sql, organisationId: number, places: CountedPlace[], liveActions: string[]) =>
  sql<Surroundings>`
    select
      c.prompt_id as "promptId",
      update_history_counts(${organisationId}, c.prompt_id, json_agg(c), ${liveActions}::text[]) as around
    from json_to_recordset(${JSON.stringify(places)}::text::json)
      c (prompt_id bigint, created_at timestamptz, id bigint, added integer)
    group by c.prompt_id`

type Written = Pick<Reconciliation, 'updates' | 'deletes' | 'mergedCommits'>

/** Writes all but the new entries. The caller has locked the histories since it read them. */
export async function writeKnown(sql: Sql, organisationId: number, { updates, deletes, mergedCommits }: Written) {
  if (mergedCommits.length > 0) {
    const rows = mergedCommits.map((commit) => ({ ...commit, organisation_id: organisationId }))
    await sql`
      insert into merged_commits
      select * from json_populate_recordset(null::merged_commits, ${JSON.stringify(rows)}::text::json)
      on conflict (organisation_id, prompt_id, branch_name, commit_sha) do update
      set is_last = excluded.is_last
      where merged_commits.merge_sha = excluded.merge_sha and merged_commits.is_last <> excluded.is_last`
  }
  if (deletes.length > 0) {
    await sql`
      delete from history_entries
      where organisation_id = ${organisationId} and id = any (${deletes.map(({ id }) => String(id))}::text[]::bigint[])`
  }
  if (updates.length > 0) {
    const rows = updates.map(({ to }) => to)
    // The ids make Postgres expect few rows. For only a JSON array it would scan the table.
    await sql`
      update history_entries h
      set
        action = u.action, user_name = u.user_name, user_email = u.user_email, commit_sha = u.commit_sha,
        branch_name = u.branch_name, pr_number = u.pr_number, pr_url = u.pr_url, title = u.title,
        authors = u.authors,
        created_at = u.created_at, in_git = u.in_git, on_github = u.on_github, by_call = u.by_call,
        as_given = u.as_given, text = coalesce(u.text, h.text)
      from json_populate_recordset(null::history_entries, ${JSON.stringify(rows)}::text::json) u
      where h.organisation_id = ${organisationId} and h.id = u.id
        and h.id = any (${rows.map(({ id }) => String(id))}::text[]::bigint[])`
  }
}

/** Marks entries that are wrongly known as changes, or wrongly not. */
export async function flipChanges(sql: Sql, organisationId: number, ids: number[]): Promise<void> {
  await sql`
    update history_entries
    set is_change = not is_change
    where organisation_id = ${organisationId} and id = any (${ids.map(String)}::text[]::bigint[])`
}

/** Selects whole histories, as far as it takes to decide which entries are changes. */
export const selectPlacedEntries = (sql: Sql, organisationId: number, promptIds: number[]) =>
  sql<PlacedEntry & { prompt_id: number; live_branch: string | null }>`
    select h.id, h.prompt_id, h.action, h.branch_name, h.commit_sha, h.created_at, h.is_change, p.live_branch
    from prompts p
    join history_entries h on h.organisation_id = p.organisation_id and h.prompt_id = p.id
    where p.organisation_id = ${organisationId} and p.id = any (${promptIds.map(String)}::text[]::bigint[])`

/** Sets the live branch of those of these prompts that have none, and returns them. The caller has locked them. */
export async function setLiveBranch(sql: Sql, organisationId: number, promptIds: number[], branch: string) {
  return sql<{ id: number; publicId: string }>`
    update prompts set live_branch = ${branch}
    where organisation_id = ${organisationId} and id = any (${promptIds.map(String)}::text[]::bigint[])
      and live_branch is null
    returning id, public_id as "publicId"`
}

/** Selects prompts that are not archived, each with the id of its newest change. */
export const selectNewestChanges = (sql: Sql, organisationId: number, promptIds: number[]) =>
  sql<{ promptId: number; id: string; name: string; newest: number }>`
    select p.id as "promptId", p.public_id as id, p.name, newest.id as newest
    from prompts p
    cross join lateral (
      select h.id from history_changes h
      where h.organisation_id = p.organisation_id and h.prompt_id = p.id
      order by h.created_at desc, h.id desc
      limit 1
    ) newest
    where p.organisation_id = ${organisationId} and p.id = any (${promptIds.map(String)}::text[]::bigint[])
      and not p.archived`
