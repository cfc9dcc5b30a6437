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
  openedByName: string
  openedByEmail: string
  openedAt: Date
  mergedByName: string | null
  mergedByEmail: string | null
  closedAt: Date | null
}

/** The head of a branch after a push, or after a merge into it. */
export type Head = { branch: string; commitSha: string }

export async function findWebhook(
  sql: Sql,
  org: string,
): Promise<{ organisationId: number; secret: string } | undefined> {
  const [row] = await sql<{ organisationId: number; secret: string }>`
    select w.organisation_id as "organisationId", w.secret
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
  { branch, commitSha }: Head,
  promptIds: number[],
  pushedAt: Date,
): Promise<void> {
  await sql`
    insert into github_touches (organisation_id, repository, branch, commit_sha, prompt_id, pushed_at)
    select ${organisationId}, ${repository}, ${branch}, ${commitSha}, prompt_id::bigint, ${pushedAt}
    from unnest(${promptIds.map(String)}::text[]) given (prompt_id)
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
      merge_commit_sha, opened_by_name, opened_by_email, opened_at, merged_by_name, merged_by_email, closed_at
    )
    values (
      ${organisationId}, ${repository}, ${pr.number}, ${pr.url}, ${pr.state}, ${pr.headRepository}, ${pr.headBranch},
      ${pr.headSha}, ${pr.baseBranch}, ${pr.mergeCommitSha}, ${pr.openedByName}, ${pr.openedByEmail}, ${pr.openedAt},
      ${pr.mergedByName}, ${pr.mergedByEmail}, ${pr.closedAt}
    )
    on conflict (organisation_id, repository, number) do update
    set
      state = excluded.state, head_repository = excluded.head_repository, head_branch = excluded.head_branch,
      head_sha = excluded.head_sha, base_branch = excluded.base_branch, merge_commit_sha = excluded.merge_commit_sha,
      merged_by_name = excluded.merged_by_name, merged_by_email = excluded.merged_by_email,
      closed_at = excluded.closed_at
    where known.state <> 'merged' and not ${isFirst}::boolean`
}

/**
 * The pull requests that a new head of a branch concerns: those from the branch that are open or ended at this very
 * commit, and those whose merge into the branch made the commit.
 */
export const selectConcerned = (
  sql: Sql,
  { organisationId, repository }: Place,
  { branch, commitSha }: Head,
): Promise<PullRequest[]> =>
  sql<PullRequest>`
    select
      number, url, state, head_repository as "headRepository", head_branch as "headBranch", head_sha as "headSha",
      base_branch as "baseBranch", merge_commit_sha as "mergeCommitSha", opened_by_name as "openedByName",
      opened_by_email as "openedByEmail", opened_at as "openedAt", merged_by_name as "mergedByName",
      merged_by_email as "mergedByEmail", closed_at as "closedAt"
    from github_pull_requests
    where organisation_id = ${organisationId} and repository = ${repository}
      and (
        head_repository = ${repository} and head_branch = ${branch} and (state = 'open' or head_sha = ${commitSha})
        or state = 'merged' and base_branch = ${branch} and merge_commit_sha = ${commitSha}
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

/** The prompts that were pushed to the branch of a pull request since the branch was last merged into the same base. */
export async function selectTouched(
  sql: Sql,
  { organisationId, repository }: Place,
  pr: PullRequest,
): Promise<number[]> {
  const rows = await sql<{ promptId: number }>`
    select distinct t.prompt_id as "promptId"
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
  return rows.map(({ promptId }) => promptId)
}

/** The prompts that the push to this head touched. */
export async function selectTouchedBy(
  sql: Sql,
  { organisationId, repository }: Place,
  { branch, commitSha }: Head,
): Promise<number[]> {
  const rows = await sql<{ promptId: number }>`
    select prompt_id as "promptId" from github_touches
    where organisation_id = ${organisationId} and repository = ${repository} and branch = ${branch}
      and commit_sha = ${commitSha}`
  return rows.map(({ promptId }) => promptId)
}

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

/** Forgets deliveries and touches from before these times, some at a time; whether there may be more. */
export async function deleteOld(sql: Sql, deliveriesBefore: Date, touchesBefore: Date, most: number): Promise<boolean> {
  const deliveries = await sql`
    delete from github_deliveries
    where (organisation_id, delivery) in (
      select organisation_id, delivery from github_deliveries
      where received_at < ${deliveriesBefore}
      order by received_at
      limit ${most}
      for update skip locked
    )
    returning 1`
  const touches = await sql`
    delete from github_touches
    where (organisation_id, repository, branch, commit_sha, prompt_id) in (
      select organisation_id, repository, branch, commit_sha, prompt_id from github_touches
      where pushed_at < ${touchesBefore}
      order by pushed_at
      limit ${most}
      for update skip locked
    )
    returning 1`
  return deliveries.length === most || touches.length === most
}
