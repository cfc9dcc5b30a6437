import type { Sql } from '../db/client.ts'
import type { Person } from '../git/entries.ts'
import type { DeliveryOutcome } from './schema.ts'

/** A repository that delivers to an organisation. The id (repositoryIdOf) stays the same when the name changes. */
export type RepositoryRef = { organisationId: number; repositoryId: number }

export type Webhook = { org: string; organisationId: number; secret: string }

export async function findWebhook(sql: Sql, org: string): Promise<Webhook | undefined> {
  const [row] = await sql<Webhook>`
    select o.public_id as org, w.organisation_id as "organisationId", w.secret
    from organisations o
    join github_webhooks w on w.organisation_id = o.id
    where o.public_id = ${org}`
  return row
}

export async function upsertWebhook(sql: Sql, organisationId: number, secret: string, at: Date): Promise<void> {
  await sql`
    insert into github_webhooks (organisation_id, secret, created_at)
    values (${organisationId}, ${secret}, ${at})
    on conflict (organisation_id) do update set secret = excluded.secret, created_at = excluded.created_at,
      last_delivery_at = null, last_event = null, last_outcome = null`
}

type LastDelivery = { at: Date; event: string; outcome: DeliveryOutcome }

/** Keeps the newest delivery, because they arrive concurrently. */
export async function updateLastDelivery(sql: Sql, organisationId: number, last: LastDelivery): Promise<void> {
  await sql`
    update github_webhooks
    set last_delivery_at = ${last.at}, last_event = ${last.event}, last_outcome = ${last.outcome}
    where organisation_id = ${organisationId} and coalesce(last_delivery_at, '-infinity') <= ${last.at}`
}

type WebhookState = { createdAt: Date } & Partial<LastDelivery>

export async function selectWebhookState(sql: Sql, organisationId: number): Promise<WebhookState | undefined> {
  const [row] = await sql<WebhookState>`
    select created_at as "createdAt", last_delivery_at as at, last_event as event, last_outcome as outcome
    from github_webhooks
    where organisation_id = ${organisationId}`
  return row
}

/** Locks the repository until the end of the transaction. */
export async function lockRepository(sql: Sql, { organisationId, repositoryId }: RepositoryRef): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtext('github'), hashtext(${`${organisationId} ${repositoryId}`}))`
}

/** The signature is a hash of the body. */
export type DeliveryKey = { id: string; signature: string }

/** Returns false if the delivery, or one with the same body, was already recorded. */
export async function insertDelivery(sql: Sql, organisationId: number, { id, signature }: DeliveryKey, at: Date) {
  const rows = await sql`
    insert into github_deliveries (organisation_id, delivery, signature, received_at)
    values (${organisationId}, ${id}, ${signature}, ${at})
    on conflict do nothing
    returning 1`
  return rows.length > 0
}

/** The name of a repository, and the time of the latest delivery that brought it, by GitHub's clock. */
type RepositoryName = { name: string; seenAt: Date }

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
}

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
 * Upserts a pull request from an event. A late event changes nothing, and a merge is final: GitHub's times are whole seconds.
 * A late `opened` gets the known head, at which a late push records the opening.
 */
export async function savePullRequest(sql: Sql, repo: RepositoryRef, pr: PullRequest, action: string) {
  const row = { organisation_id: repo.organisationId, repository_id: repo.repositoryId, ...pr }
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
  if (action !== 'opened') return pr
  const [known] = await sql<Pick<PullRequest, 'head_sha'>>`
    select head_sha from github_pull_requests
    where organisation_id = ${repo.organisationId} and repository_id = ${repo.repositoryId} and number = ${pr.number}`
  return { ...pr, ...known }
}

/** The pull requests from a branch that a stored push to it belongs to. */
export const selectPullRequestsFrom = (sql: Sql, repo: RepositoryRef, { branch, commitSha }: Head) =>
  sql<PullRequest>`
    select * from github_pull_requests pr
    where organisation_id = ${repo.organisationId} and repository_id = ${repo.repositoryId} and head_branch = ${branch}
      and head_repository_id = ${repo.repositoryId} and base_branch <> ${branch}
      and exists (select from github_prompts_on_branch(pr) a where a.head_sha = ${commitSha})
    order by number`

/** The merged pull requests whose merge commit is in the push. */
export const selectMerges = (sql: Sql, repo: RepositoryRef, { head: { branch, commitSha }, shas }: Push) =>
  sql<MergedPullRequest>`
    select
      pr.*,
      array_to_json(array(select unnest(a.prompt_shas) from github_prompts_on_branch(pr) a)) as branch_shas,
      array_to_json(array(
        select p.prompt_id from github_pull_request_prompts p
        where p.organisation_id = pr.organisation_id and p.repository_id = pr.repository_id and p.number = pr.number
      )) as prompt_ids
    from github_pull_requests pr
    where organisation_id = ${repo.organisationId} and repository_id = ${repo.repositoryId}
      and merge_commit_sha = any(${[commitSha, ...shas]}::text[]) and state = 'merged' and base_branch = ${branch}
    order by number`

const promptIdsOf = async (rows: Promise<{ promptId: number }[]>) => (await rows).map(({ promptId }) => promptId)

/** Adds the prompts that were pushed to the pull request's branch. Returns the new ones. */
export const addBranchPrompts = (sql: Sql, repo: RepositoryRef, number: number) =>
  promptIdsOf(sql`
    insert into github_pull_request_prompts (organisation_id, repository_id, number, prompt_id)
    select pr.organisation_id, pr.repository_id, pr.number, a.prompt_id
    from github_pull_requests pr
    cross join lateral github_prompts_on_branch(pr) a
    where pr.organisation_id = ${repo.organisationId} and pr.repository_id = ${repo.repositoryId} and pr.number = ${number}
    on conflict do nothing
    returning prompt_id as "promptId"`)

/** Leaves out prompts that were only pushed before the pull request or after its end, which may arrive in any order. */
export const selectPullRequestPrompts = (sql: Sql, repo: RepositoryRef, number: number) =>
  promptIdsOf(sql`
    select p.prompt_id as "promptId"
    from github_pull_request_prompts p
    join github_pull_requests pr using (organisation_id, repository_id, number)
    where p.organisation_id = ${repo.organisationId} and p.repository_id = ${repo.repositoryId} and p.number = ${number}
      and (
        p.prompt_id in (select a.prompt_id from github_prompts_on_branch(pr) a)
        or not exists (
          select from github_affected_prompts a
          where a.organisation_id = pr.organisation_id and a.repository_id = pr.repository_id
            and a.branch = pr.head_branch and a.prompt_id = p.prompt_id
        )
      )
    order by p.prompt_id`)
