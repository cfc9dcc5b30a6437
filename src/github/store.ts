import type { Sql } from '../db/client.ts'

/** A repository, as one organisation knows it. */
export type Place = { organisationId: number; repository: string }

export type PullRequest = {
  number: number
  url: string
  state: 'open' | 'merged' | 'closed'
  /** Null when that fork is gone. */
  headRepository: string | null
  headBranch: string
  headSha: string
  baseBranch: string
  mergeCommitSha: string | null
  /** How many its branch has. */
  commits: number
  openedByName: string
  openedByEmail: string
  openedAt: Date
  mergedByName: string | null
  mergedByEmail: string | null
  closedAt: Date | null
}

/** The head of a branch after a push, or after a merge into it. */
export type Head = { branch: string; commitSha: string }

/** A prompt, and the commits that touch it, oldest first. */
export type Touch = { promptId: number; commits: string[] }

export type Push = {
  head: Head
  /** All of its commits, oldest first. */
  commits: string[]
  /** Whether none of them was pushed before, to another branch. */
  isAllNew: boolean
  touches: Touch[]
}

export async function findWebhook(
  sql: Sql,
  org: string,
): Promise<{ org: string; organisationId: number; secret: string } | undefined> {
  const [row] = await sql<{ org: string; organisationId: number; secret: string }>`
    select o.public_id as org, w.organisation_id as "organisationId", w.secret
    from github_webhooks w
    join organisations o on o.id = w.organisation_id
    where o.public_id = ${org}`
  return row
}

export async function upsertWebhook(sql: Sql, organisationId: number, secret: string, at: Date): Promise<void> {
  await sql`
    insert into github_webhooks (organisation_id, secret, created_at)
    values (${organisationId}, ${secret}, ${at})
    on conflict (organisation_id) do update set secret = excluded.secret, created_at = excluded.created_at`
}

/** Until the end of the transaction nobody else works on this repository. */
export async function lockRepository(sql: Sql, { organisationId, repository }: Place): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtext('github'), hashtext(${`${organisationId} ${repository}`}))`
}

/** False when the delivery was carried out before. */
export async function insertDelivery(sql: Sql, organisationId: number, delivery: string, at: Date): Promise<boolean> {
  const rows = await sql`
    insert into github_deliveries (organisation_id, delivery, received_at)
    values (${organisationId}, ${delivery}, ${at})
    on conflict do nothing
    returning 1`
  return rows.length > 0
}

export async function insertTouches(
  sql: Sql,
  { organisationId, repository }: Place,
  { head, commits, isAllNew, touches }: Push,
  pushedAt: Date,
): Promise<void> {
  await sql`
    insert into github_touches (
      organisation_id, repository, branch, commit_sha, prompt_id, pushed_at, touching, pushed, all_new
    )
    select
      ${organisationId}, ${repository}, ${head.branch}, ${head.commitSha}, "promptId", ${pushedAt}, commits,
      ${commits}::text[], ${isAllNew}
    from jsonb_to_recordset(${JSON.stringify(touches)}::text::jsonb) as given ("promptId" bigint, commits text[])
    on conflict do nothing`
}

/** Forgets what was pushed to an earlier branch of the same name. */
export async function deleteTouches(
  sql: Sql,
  { organisationId, repository }: Place,
  branch: string,
  before: Date,
): Promise<void> {
  await sql`
    delete from github_touches
    where organisation_id = ${organisationId} and repository = ${repository} and branch = ${branch}
      and pushed_at < ${before}`
}

/** Takes over what an event says of a pull request. A late `opened` says nothing new, and a merge is final. */
export async function savePullRequest(
  sql: Sql,
  { organisationId, repository }: Place,
  pr: PullRequest,
  isFirst: boolean,
): Promise<void> {
  await sql`
    insert into github_pull_requests as known (
      organisation_id, repository, number, url, state, head_repository, head_branch, head_sha, base_branch,
      merge_commit_sha, commits, opened_by_name, opened_by_email, opened_at, merged_by_name, merged_by_email, closed_at
    )
    values (
      ${organisationId}, ${repository}, ${pr.number}, ${pr.url}, ${pr.state}, ${pr.headRepository}, ${pr.headBranch},
      ${pr.headSha}, ${pr.baseBranch}, ${pr.mergeCommitSha}, ${pr.commits}, ${pr.openedByName}, ${pr.openedByEmail},
      ${pr.openedAt}, ${pr.mergedByName}, ${pr.mergedByEmail}, ${pr.closedAt}
    )
    on conflict (organisation_id, repository, number) do update
    set
      state = excluded.state, head_repository = excluded.head_repository, head_branch = excluded.head_branch,
      head_sha = excluded.head_sha, base_branch = excluded.base_branch, merge_commit_sha = excluded.merge_commit_sha,
      commits = excluded.commits, merged_by_name = excluded.merged_by_name, merged_by_email = excluded.merged_by_email,
      closed_at = excluded.closed_at
    where known.state <> 'merged' and not ${isFirst}::boolean`
}

/**
 * The pull requests that a push concerns: those from the branch that are open or ended at its very head, and those
 * whose merge into the branch made one of its commits.
 */
export const selectConcerned = (
  sql: Sql,
  { organisationId, repository }: Place,
  { head: { branch, commitSha }, commits }: Push,
): Promise<PullRequest[]> =>
  sql<PullRequest>`
    select
      number, url, state, head_repository as "headRepository", head_branch as "headBranch", head_sha as "headSha",
      base_branch as "baseBranch", merge_commit_sha as "mergeCommitSha", commits,
      opened_by_name as "openedByName", opened_by_email as "openedByEmail", opened_at as "openedAt",
      merged_by_name as "mergedByName", merged_by_email as "mergedByEmail", closed_at as "closedAt"
    from github_pull_requests
    where organisation_id = ${organisationId} and repository = ${repository}
      and (
        head_repository = ${repository} and head_branch = ${branch} and (state = 'open' or head_sha = ${commitSha})
        or state = 'merged' and base_branch = ${branch} and merge_commit_sha = any(${[commitSha, ...commits]}::text[])
      )
    order by number`

/** Adds prompts to those a pull request changes; which of them were not known. */
export async function addPrompts(
  sql: Sql,
  { organisationId, repository }: Place,
  number: number,
  promptIds: number[],
): Promise<number[]> {
  const rows = await sql<{ promptId: number }>`
    insert into github_pull_request_prompts (organisation_id, repository, number, prompt_id)
    select ${organisationId}, ${repository}, ${number}, prompt_id::bigint
    from unnest(${promptIds.map(String)}::text[]) given (prompt_id)
    on conflict do nothing
    returning prompt_id as "promptId"`
  return rows.map(({ promptId }) => promptId)
}

/** What was pushed to the branch of a pull request since the branch was last merged into the same base. */
export const selectTouched = (sql: Sql, { organisationId, repository }: Place, pr: PullRequest): Promise<Touch[]> =>
  sql<Touch>`
    select t.prompt_id as "promptId", to_json(t.touching) as commits
    from github_touches t
    where t.organisation_id = ${organisationId} and t.repository = ${repository}
      and t.branch = ${pr.headBranch} and t.repository = ${pr.headRepository}
      and not exists (
        select from github_pull_requests merged
        where merged.organisation_id = t.organisation_id and merged.repository = t.repository
          and merged.head_repository = t.repository and merged.head_branch = t.branch
          and merged.base_branch = ${pr.baseBranch} and merged.number <> ${pr.number}
          and merged.state = 'merged' and merged.closed_at >= t.pushed_at
      )`

/** The pushes to a branch that brought a commit, as far as they touched prompts. */
export const selectPushes = (
  sql: Sql,
  { organisationId, repository }: Place,
  { branch, commitSha }: Head,
): Promise<Push[]> =>
  sql<Push>`
    select
      jsonb_build_object('branch', branch, 'commitSha', commit_sha) as head,
      to_json(pushed) as commits, all_new as "isAllNew",
      jsonb_agg(jsonb_build_object('promptId', prompt_id, 'commits', touching)) as touches
    from github_touches
    where organisation_id = ${organisationId} and repository = ${repository} and branch = ${branch}
      and (commit_sha = ${commitSha} or pushed @> array[${commitSha}]::text[])
    group by branch, commit_sha, pushed, all_new`

export async function selectPrompts(
  sql: Sql,
  { organisationId, repository }: Place,
  number: number,
): Promise<number[]> {
  const rows = await sql<{ promptId: number }>`
    select prompt_id as "promptId" from github_pull_request_prompts
    where organisation_id = ${organisationId} and repository = ${repository} and number = ${number}
    order by prompt_id`
  return rows.map(({ promptId }) => promptId)
}

/** Knows under another name what is known of a repository, unless there is something under that name. */
export async function moveRepository(sql: Sql, { organisationId, repository }: Place, to: string): Promise<void> {
  // In one statement, at whose end alone the pull requests and their prompts must agree.
  await sql`
    with free as (
      select where not exists (
        select from github_touches where organisation_id = ${organisationId} and repository = ${to}
      ) and not exists (
        select from github_pull_requests where organisation_id = ${organisationId} and repository = ${to}
      )
    ), touches as (
      update github_touches set repository = ${to}
      where organisation_id = ${organisationId} and repository = ${repository} and exists (select from free)
    ), prompts as (
      update github_pull_request_prompts set repository = ${to}
      where organisation_id = ${organisationId} and repository = ${repository} and exists (select from free)
    )
    update github_pull_requests
    set
      repository = ${to},
      head_repository = case head_repository when ${repository} then ${to} else head_repository end
    where organisation_id = ${organisationId} and repository = ${repository} and exists (select from free)`
}

/** Forgets deliveries from before a time, some at a time; whether there may be more. */
export async function deleteOldDeliveries(sql: Sql, before: Date, most: number): Promise<boolean> {
  const rows = await sql`
    delete from github_deliveries
    where (organisation_id, delivery) in (
      select organisation_id, delivery from github_deliveries
      where received_at < ${before}
      order by received_at
      limit ${most}
      for update skip locked
    )
    returning 1`
  return rows.length === most
}

/** The same for what was pushed. */
export async function deleteOldTouches(sql: Sql, before: Date, most: number): Promise<boolean> {
  const rows = await sql`
    delete from github_touches
    where (organisation_id, repository, branch, commit_sha, prompt_id) in (
      select organisation_id, repository, branch, commit_sha, prompt_id from github_touches
      where pushed_at < ${before}
      order by pushed_at
      limit ${most}
      for update skip locked
    )
    returning 1`
  return rows.length === most
}

/** The same for pull requests that have ended, with their prompts. */
export async function deleteOldPullRequests(sql: Sql, before: Date, most: number): Promise<boolean> {
  const rows = await sql`
    with old as (
      select organisation_id, repository, number from github_pull_requests
      where state <> 'open' and closed_at < ${before}
      order by closed_at
      limit ${most}
      for update skip locked
    ), prompts as (
      delete from github_pull_request_prompts
      where (organisation_id, repository, number) in (select * from old)
    )
    delete from github_pull_requests
    where (organisation_id, repository, number) in (select * from old)
    returning 1`
  return rows.length === most
}
