import type { Sql } from '../db/client.ts'
import type { Person } from '../git/entries.ts'

/** A repository whose events an organisation gets. The id (repositoryIdOf) stays the same when the name changes. */
export type RepositoryRef = { organisationId: number; repositoryId: number }

/** Locks the repository until the end of the transaction. */
export async function lockRepository(sql: Sql, { organisationId, repositoryId }: RepositoryRef): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtext('github'), hashtext(${`${organisationId} ${repositoryId}`}))`
}

/** The signature is a hash of the body. */
export type GithubEventKey = { id: string; signature: string }

/** Returns false if the event, or one with the same body, was already recorded. */
export async function insertGithubEvent(sql: Sql, organisationId: number, { id, signature }: GithubEventKey, at: Date) {
  const rows = await sql`
    insert into github_events (organisation_id, id, signature, received_at)
    values (${organisationId}, ${id}, ${signature}, ${at})
    on conflict do nothing
    returning 1`
  return rows.length > 0
}

/** The name of a repository, and the time of the latest event with it, by GitHub's clock. */
export type RepositoryName = { name: string; seenAt: Date }

export async function selectRepository(sql: Sql, repo: RepositoryRef): Promise<RepositoryName | undefined> {
  const [row] = await sql<RepositoryName>`
    select name, seen_at as "seenAt" from github_repositories
    where organisation_id = ${repo.organisationId} and id = ${repo.repositoryId}`
  return row
}

/** Upserts the repository's name and removes it from any other repository. */
export async function upsertRepository(sql: Sql, repo: RepositoryRef, { name, seenAt }: RepositoryName): Promise<void> {
  await sql`
    delete from github_repositories
    where organisation_id = ${repo.organisationId} and name = ${name} and id <> ${repo.repositoryId}`
  await sql`
    insert into github_repositories (organisation_id, id, name, seen_at)
    values (${repo.organisationId}, ${repo.repositoryId}, ${name}, ${seenAt})
    on conflict (organisation_id, id) do update set name = excluded.name, seen_at = excluded.seen_at`
}

/** A row of github_pull_requests; sql/0004_github.sql describes the columns. */
export type PullRequest = {
  number: number
  url: string
  title: string | null
  state: 'open' | 'merged' | 'closed'
  head_repository_id: number | null
  head_branch: string
  head_sha: string
  base_branch: string
  merge_commit_sha: string | null
  commit_count: number
  opened_by: Person
  opened_at: Date
  merged_by: Person | null
  closed_at: Date | null
  changed_at: Date
  opened_sha: string | null
  closings: Closing[]
}

/** A time that a pull request was closed without being merged, with the head of its branch then. */
export type Closing = { at: string; sha: string }

/** A merged pull request, with the pushed commits of its branch that change prompts, and the prompts it is known to change. */
export type MergedPullRequest = PullRequest & {
  merge_commit_sha: string
  branch_shas: string[]
  prompt_ids: number[]
}

/** The head of a branch after a push, or after a merge into it. */
type Head = { branch: string; commitSha: string }

export type Push = {
  head: Head
  /** Of all its commits, oldest first. */
  shas: string[]
  /** Whether no commit was pushed before, to another branch. */
  isAllNew: boolean
  /** The prompts whose files it changes, each with the SHAs of the commits that change it, oldest first. */
  affected: { promptId: number; shas: string[] }[]
}

export async function insertAffectedPrompts(sql: Sql, repo: RepositoryRef, push: Push, pushedAt: Date): Promise<void> {
  const { head, shas, isAllNew, affected } = push
  await sql`
    insert into github_affected_prompts (
      organisation_id, repository_id, branch, head_sha, prompt_id, pushed_at, prompt_shas, push_shas, all_new
    )
    select
      ${repo.organisationId}, ${repo.repositoryId}, ${head.branch}, ${head.commitSha}, "promptId", ${pushedAt}, shas,
      ${shas}::text[], ${isAllNew}
    from jsonb_to_recordset(${JSON.stringify(affected)}::text::jsonb) as given ("promptId" bigint, shas text[])
    on conflict do nothing`
}

/** Deletes the pushes to an earlier branch of the same name. */
export async function deletePushesTo(sql: Sql, repo: RepositoryRef, branch: string, before: Date): Promise<void> {
  await sql`
    delete from github_affected_prompts
    where organisation_id = ${repo.organisationId} and repository_id = ${repo.repositoryId} and branch = ${branch}
      and pushed_at < ${before}`
}

/** The pushes to a branch that brought a commit and affected prompts. */
export const selectPushes = (sql: Sql, repo: RepositoryRef, { branch, commitSha }: Head): Promise<Push[]> =>
  sql<Push>`
    select
      jsonb_build_object('branch', branch, 'commitSha', head_sha) as head,
      to_json(push_shas) as shas, all_new as "isAllNew",
      jsonb_agg(jsonb_build_object('promptId', prompt_id, 'shas', prompt_shas)) as affected
    from github_affected_prompts
    where organisation_id = ${repo.organisationId} and repository_id = ${repo.repositoryId} and branch = ${branch}
      and (head_sha = ${commitSha} or push_shas @> array[${commitSha}]::text[])
    group by branch, head_sha, push_shas, all_new`

/**
 * Upserts a pull request from an event, and returns it with its opening and closings. Apart from those, a late event changes
 * nothing, and a merge is final: GitHub's times are whole seconds.
 */
export async function savePullRequest(sql: Sql, repo: RepositoryRef, pr: PullRequest, action: string) {
  const row = { organisation_id: repo.organisationId, repository_id: repo.repositoryId, ...pr }
  const closings = JSON.stringify(pr.closings)
  await sql`
    insert into github_pull_requests as known
    select * from json_populate_record(null::github_pull_requests, ${JSON.stringify(row)}::text::json)
    on conflict (organisation_id, repository_id, number) do update
    set
      title = excluded.title, state = excluded.state, head_repository_id = excluded.head_repository_id,
      head_branch = excluded.head_branch, head_sha = excluded.head_sha, base_branch = excluded.base_branch,
      merge_commit_sha = excluded.merge_commit_sha, commit_count = excluded.commit_count, merged_by = excluded.merged_by,
      closed_at = excluded.closed_at, changed_at = excluded.changed_at
    where known.state <> 'merged' and ${action}::text <> 'opened'
      and (excluded.state = 'merged' or known.changed_at <= excluded.changed_at)`
  const [known] = await sql<Pick<PullRequest, 'opened_sha' | 'closings'>>`
    update github_pull_requests
    set
      opened_sha = coalesce(opened_sha, ${pr.opened_sha}),
      closings = case when closings @> ${closings}::text::jsonb then closings else closings || ${closings}::text::jsonb end
    where organisation_id = ${repo.organisationId} and repository_id = ${repo.repositoryId} and number = ${pr.number}
    returning opened_sha, closings`
  return { ...pr, ...known }
}

/** Which pushes to its branch a pull request consists of. A time that is null is no bound. */
export type PushWindow = {
  branch: string
  since: Date | null
  until: Date | null
  headSha: string
  base: string
  openedAt: Date
}

export const selectPullRequestsFrom = (sql: Sql, repo: RepositoryRef, branch: string) =>
  sql<PullRequest>`
    select * from github_pull_requests
    where organisation_id = ${repo.organisationId} and repository_id = ${repo.repositoryId} and head_branch = ${branch}
      and head_repository_id = ${repo.repositoryId}
    order by number`

/**
 * The commits that were pushed to a branch within a window and change prompts. Commits that were on the base before the pull
 * request was opened are not its own: another one had brought them, whose merge event may be lost.
 */
export const selectBranchPushes = (sql: Sql, repo: RepositoryRef, window: PushWindow) =>
  sql<{ promptId: number; shas: string[] }>`
    select a.prompt_id as "promptId", to_json(a.prompt_shas) as shas
    from github_affected_prompts a
    where a.organisation_id = ${repo.organisationId} and a.repository_id = ${repo.repositoryId}
      and a.branch = ${window.branch} and a.pushed_at > coalesce(${window.since}, '-infinity'::timestamptz)
      and (a.pushed_at <= coalesce(${window.until}, 'infinity'::timestamptz) or a.head_sha = ${window.headSha})
      and not exists (
        select from github_affected_prompts b
        where b.organisation_id = a.organisation_id and b.repository_id = a.repository_id and b.branch = ${window.base}
          and b.pushed_at < ${window.openedAt} and b.push_shas @> a.prompt_shas
      )`

/** The merged pull requests whose merge commit is in the push, each with the prompts it is known to change. */
export const selectMerges = (sql: Sql, repo: RepositoryRef, { head: { branch, commitSha }, shas }: Push) =>
  sql<Omit<MergedPullRequest, 'branch_shas'>>`
    select
      pr.*,
      array_to_json(array(
        select p.prompt_id from github_pull_request_prompts p
        where p.organisation_id = pr.organisation_id and p.repository_id = pr.repository_id and p.number = pr.number
      )) as prompt_ids
    from github_pull_requests pr
    where organisation_id = ${repo.organisationId} and repository_id = ${repo.repositoryId}
      and merge_commit_sha = any(${[commitSha, ...shas]}::text[]) and state = 'merged' and base_branch = ${branch}
    order by number`

/** Adds prompts to those that a pull request changes. Returns the new ones. */
export async function addPrompts(sql: Sql, repo: RepositoryRef, number: number, promptIds: number[]) {
  const rows = await sql<{ promptId: number }>`
    insert into github_pull_request_prompts (organisation_id, repository_id, number, prompt_id)
    select distinct ${repo.organisationId}::bigint, ${repo.repositoryId}::bigint, ${number}::integer, id
    from unnest(${promptIds.map(String)}::text[]::bigint[]) id
    on conflict do nothing
    returning prompt_id as "promptId"`
  return rows.map(({ promptId }) => promptId)
}

/** The prompts that a pull request is known to change, and whether a push to its branch is known that changes them. */
export const selectPullRequestPrompts = (sql: Sql, repo: RepositoryRef, number: number, branch: string) =>
  sql<{ promptId: number; isPushed: boolean }>`
    select
      p.prompt_id as "promptId",
      exists (
        select from github_affected_prompts a
        where a.organisation_id = p.organisation_id and a.repository_id = p.repository_id and a.branch = ${branch}
          and a.prompt_id = p.prompt_id
      ) as "isPushed"
    from github_pull_request_prompts p
    where p.organisation_id = ${repo.organisationId} and p.repository_id = ${repo.repositoryId} and p.number = ${number}
    order by p.prompt_id`
