import type { Sql } from '../db/client.ts'
import type { Head, MergedPullRequest, PullRequest, Push } from '../git/pushes.ts'
import type { RepositoryRef } from './store.ts'

export async function insertTouches(
  sql: Sql,
  ref: RepositoryRef,
  { head, commits, isAllNew, touches }: Push,
  pushedAt: Date,
): Promise<void> {
  await sql`
    insert into github_touches (
      organisation_id, repository_id, branch, commit_sha, prompt_id, pushed_at, touching, pushed, all_new
    )
    select
      ${ref.organisationId}, ${ref.repositoryId}, ${head.branch}, ${head.commitSha}, "promptId", ${pushedAt}, commits,
      ${commits}::text[], ${isAllNew}
    from jsonb_to_recordset(${JSON.stringify(touches)}::text::jsonb) as given ("promptId" bigint, commits text[])
    on conflict do nothing`
}

/** Deletes what was pushed to an earlier branch of the same name. */
export async function deleteTouches(sql: Sql, ref: RepositoryRef, branch: string, before: Date): Promise<void> {
  await sql`
    delete from github_touches
    where organisation_id = ${ref.organisationId} and repository_id = ${ref.repositoryId} and branch = ${branch}
      and pushed_at < ${before}`
}

/** The pushes to a branch that brought a commit, as far as they touched prompts. */
export const selectPushes = (sql: Sql, ref: RepositoryRef, { branch, commitSha }: Head): Promise<Push[]> =>
  sql<Push>`
    select
      jsonb_build_object('branch', branch, 'commitSha', commit_sha) as head,
      to_json(pushed) as commits, all_new as "isAllNew",
      jsonb_agg(jsonb_build_object('promptId', prompt_id, 'commits', touching)) as touches
    from github_touches
    where organisation_id = ${ref.organisationId} and repository_id = ${ref.repositoryId} and branch = ${branch}
      and (commit_sha = ${commitSha} or pushed @> array[${commitSha}]::text[])
    group by branch, commit_sha, pushed, all_new`

/** Upserts a pull request from an event. A late `opened` changes nothing, and a merge is final. */
export async function savePullRequest(
  sql: Sql,
  ref: RepositoryRef,
  pr: Omit<PullRequest, 'reopenings'>,
  action: string,
): Promise<PullRequest> {
  const [row] = await sql<{ reopenings: number }>`
    insert into github_pull_requests as known (
      organisation_id, repository_id, number, url, state, head_repository_id, head_branch, head_sha, base_branch,
      merge_commit_sha, commits, opened_by, opened_at, merged_by, closed_at
    )
    values (
      ${ref.organisationId}, ${ref.repositoryId}, ${pr.number}, ${pr.url}, ${pr.state}, ${pr.headRepositoryId}, ${pr.headBranch},
      ${pr.headSha}, ${pr.baseBranch}, ${pr.mergeCommitSha}, ${pr.commits}, ${JSON.stringify(pr.openedBy)}::text::jsonb,
      ${pr.openedAt}, ${pr.mergedBy && JSON.stringify(pr.mergedBy)}::text::jsonb, ${pr.closedAt}
    )
    on conflict (organisation_id, repository_id, number) do update
    set
      state = excluded.state, head_repository_id = excluded.head_repository_id, head_branch = excluded.head_branch,
      head_sha = excluded.head_sha, base_branch = excluded.base_branch, merge_commit_sha = excluded.merge_commit_sha,
      commits = excluded.commits, merged_by = excluded.merged_by, closed_at = excluded.closed_at,
      reopenings = known.reopenings + (${action}::text = 'reopened')::integer
    where known.state <> 'merged' and ${action}::text <> 'opened'
    returning reopenings`
  return { ...pr, reopenings: row?.reopenings ?? 0 }
}

/** The pull requests from a branch that are open, or that ended at its head. */
export const selectPullRequestsFrom = (
  sql: Sql,
  ref: RepositoryRef,
  { branch, commitSha }: Head,
): Promise<PullRequest[]> =>
  sql<PullRequest>`
    select
      number, url, state, head_repository_id as "headRepositoryId", head_branch as "headBranch", head_sha as "headSha",
      base_branch as "baseBranch", merge_commit_sha as "mergeCommitSha", commits, opened_by as "openedBy",
      opened_at as "openedAt", merged_by as "mergedBy", closed_at as "closedAt", reopenings
    from github_pull_requests
    where organisation_id::text || ' ' || repository_id::text || ' ' || head_branch = ${`${ref.organisationId} ${ref.repositoryId} ${branch}`}
      and head_repository_id = ${ref.repositoryId} and base_branch <> ${branch} and (state = 'open' or head_sha = ${commitSha})
    order by number`

/** The pull requests whose merge into the branch made one of the commits of a push. */
export const selectMerges = (
  sql: Sql,
  ref: RepositoryRef,
  { head: { branch, commitSha }, commits }: Push,
): Promise<MergedPullRequest[]> => {
  const mergeKeys = [commitSha, ...commits].map((sha) => `${ref.organisationId} ${ref.repositoryId} ${sha}`)
  return sql<MergedPullRequest>`
    select
      number, url, state, head_repository_id as "headRepositoryId", head_branch as "headBranch", head_sha as "headSha",
      base_branch as "baseBranch", merge_commit_sha as "mergeCommitSha", commits, opened_by as "openedBy",
      opened_at as "openedAt", merged_by as "mergedBy", closed_at as "closedAt", reopenings,
      array_to_json(array(
        select unnest(t.touching) from github_branch_touches(pr) t
      )) as "branchCommits",
      array_to_json(array(
        select p.prompt_id from github_pull_request_prompts p
        where p.organisation_id = pr.organisation_id and p.repository_id = pr.repository_id and p.number = pr.number
      )) as "promptIds"
    from github_pull_requests pr
    where organisation_id::text || ' ' || repository_id::text || ' ' || merge_commit_sha = any(${mergeKeys}::text[])
      and state = 'merged' and base_branch = ${branch}
    order by number`
}

/** Adds prompts to those that a pull request changes, and returns the ones that were not known. */
export async function addPrompts(sql: Sql, ref: RepositoryRef, number: number, promptIds: number[]): Promise<number[]> {
  const rows = await sql<{ promptId: number }>`
    insert into github_pull_request_prompts (organisation_id, repository_id, number, prompt_id)
    select ${ref.organisationId}, ${ref.repositoryId}, ${number}, prompt_id::bigint
    from unnest(${promptIds.map(String)}::text[]) given (prompt_id)
    on conflict do nothing
    returning prompt_id as "promptId"`
  return rows.map(({ promptId }) => promptId)
}

/** Adds the prompts that were pushed to its branch, and returns the ones that were not known. */
export async function addBranchPrompts(sql: Sql, ref: RepositoryRef, number: number): Promise<number[]> {
  const rows = await sql<{ promptId: number }>`
    insert into github_pull_request_prompts (organisation_id, repository_id, number, prompt_id)
    select pr.organisation_id, pr.repository_id, pr.number, t.prompt_id
    from github_pull_requests pr
    cross join lateral github_branch_touches(pr) t
    where pr.organisation_id = ${ref.organisationId} and pr.repository_id = ${ref.repositoryId} and pr.number = ${number}
    on conflict do nothing
    returning prompt_id as "promptId"`
  return rows.map(({ promptId }) => promptId)
}

export async function selectPrompts(sql: Sql, ref: RepositoryRef, number: number): Promise<number[]> {
  const rows = await sql<{ promptId: number }>`
    select prompt_id as "promptId" from github_pull_request_prompts
    where organisation_id = ${ref.organisationId} and repository_id = ${ref.repositoryId} and number = ${number}
    order by prompt_id`
  return rows.map(({ promptId }) => promptId)
}
