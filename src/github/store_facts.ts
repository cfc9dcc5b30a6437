import type { Sql } from '../db/client.ts'
import type { Person } from '../git/entries.ts'
import type { RepositoryRef } from './store.ts'

/** A pull request, by the names of its columns. */
export type PullRequest = {
  number: number
  url: string
  state: 'open' | 'merged' | 'closed'
  /** Null when that fork is gone. */
  head_repository_id: number | null
  head_branch: string
  head_sha: string
  base_branch: string
  /** Null unless it is merged. */
  merge_commit_sha: string | null
  /** How many commits its branch has. */
  commits: number
  opened_by: Person
  opened_at: Date
  merged_by: Person | null
  closed_at: Date | null
  /** How often it was reopened. */
  reopenings: number
}

/** A merged pull request, with the commits that were pushed to its branch and the prompts that it is known to change. */
export type MergedPullRequest = PullRequest & {
  merge_commit_sha: string
  branch_commits: string[]
  prompt_ids: number[]
}

/** The head of a branch after a push, or after a merge into it. */
type Head = { branch: string; commitSha: string }

/** A prompt, and the commits that touch its file, oldest first. */
export type Touch = { promptId: number; commits: string[] }

export type Push = {
  head: Head
  /** The SHAs of all its commits, oldest first. */
  commits: string[]
  /** Whether none of them was pushed before, to another branch. */
  isAllNew: boolean
  touches: Touch[]
}

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
  { organisationId, repositoryId }: RepositoryRef,
  given: Omit<PullRequest, 'reopenings'>,
  action: string,
): Promise<PullRequest> {
  const pr = { ...given, reopenings: 0 }
  const row = { organisation_id: organisationId, repository_id: repositoryId, ...pr }
  const [saved] = await sql<{ reopenings: number }>`
    insert into github_pull_requests as known
    select * from json_populate_record(null::github_pull_requests, ${JSON.stringify(row)}::text::json)
    on conflict (organisation_id, repository_id, number) do update
    set
      state = excluded.state, head_repository_id = excluded.head_repository_id, head_branch = excluded.head_branch,
      head_sha = excluded.head_sha, base_branch = excluded.base_branch, merge_commit_sha = excluded.merge_commit_sha,
      commits = excluded.commits, merged_by = excluded.merged_by, closed_at = excluded.closed_at,
      reopenings = known.reopenings + (${action}::text = 'reopened')::integer
    where known.state <> 'merged' and ${action}::text <> 'opened'
    returning reopenings`
  return { ...pr, ...saved }
}

/** The pull requests from a branch that are open, or that ended at its head. */
export const selectPullRequestsFrom = (
  sql: Sql,
  { organisationId, repositoryId }: RepositoryRef,
  { branch, commitSha }: Head,
): Promise<PullRequest[]> =>
  sql<PullRequest>`
    select pr.*
    from github_pull_requests pr
    where organisation_id::text || ' ' || repository_id::text || ' ' || head_branch
        = ${`${organisationId} ${repositoryId} ${branch}`}
      and head_repository_id = ${repositoryId} and base_branch <> ${branch} and (state = 'open' or head_sha = ${commitSha})
    order by number`

/** The pull requests whose merge into the branch made one of the commits of a push. */
export function selectMerges(
  sql: Sql,
  { organisationId, repositoryId }: RepositoryRef,
  { head: { branch, commitSha }, commits }: Push,
): Promise<MergedPullRequest[]> {
  const mergeKeys = [commitSha, ...commits].map((sha) => `${organisationId} ${repositoryId} ${sha}`)
  return sql<MergedPullRequest>`
    select
      pr.*,
      array_to_json(array(select unnest(t.touching) from github_branch_touches(pr) t)) as branch_commits,
      array_to_json(array(
        select p.prompt_id from github_pull_request_prompts p
        where p.organisation_id = pr.organisation_id and p.repository_id = pr.repository_id and p.number = pr.number
      )) as prompt_ids
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
