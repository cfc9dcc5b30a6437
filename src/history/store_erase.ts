// Removes entries and histories, and notes what must not come back.
import type { Sql } from '../db/client.ts'
import type { OwnedPrompt } from '../prompts/find.ts'
import type { EntryIdentity, KnownEntry } from './identity.ts'

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

/** Forgets what merges brought to their branches, so that a sync can add it. */
export async function deleteMergedCommits(sql: Sql, organisationId: number, merges: EntryIdentity[]): Promise<void> {
  await sql`
    delete from merged_commits m
    using unnest(
      ${merges.map(({ prompt_id }) => String(prompt_id))}::text[]::bigint[],
      ${merges.map(({ branch_name }) => branch_name)}::text[], ${merges.map(({ commit_sha }) => commit_sha)}::text[]
    ) d (prompt_id, branch_name, merge_sha)
    where m.organisation_id = ${organisationId} and m.prompt_id = d.prompt_id and m.branch_name = d.branch_name
      and m.merge_sha = lower(d.merge_sha collate "C")`
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

/** Erases the texts of up to `limit` entries of a prompt, or with null of the organisation. Returns their number. */
export async function eraseTextsOf(sql: Sql, organisationId: number, promptId: number | null, limit: number) {
  const rows = await sql`
    update history_entries
    set text = null
    where organisation_id = ${organisationId} and id = any(array(
      select id from history_entries
      where organisation_id = ${organisationId} and text is not null
        and (${promptId}::bigint is null or prompt_id = ${promptId})
      limit ${limit}
    ))
    returning 1`
  return rows.length
}
