import type { Sql } from '../db/client.ts'
import {
  type Person,
  type PullRequestEvent,
  pullRequestEntry,
  sanitizeBranch,
  sanitizePerson,
  sanitizeSha,
  sanitizeTitle,
  sanitizeUrl,
} from '../git/entries.ts'
import type { PromptEntry } from '../history/record.ts'
import { parseInstant } from '../lib/times.ts'
import { type Account, type PullRequestPayload, repositoryIdOf } from './schema.ts'
import {
  addBranchPrompts,
  addPrompts,
  type GivenPullRequest,
  insertAffectedPrompts,
  type MergedPullRequest,
  type PullRequest,
  type Push,
  type RepositoryRef,
  savePullRequest,
  selectMerges,
  selectPullRequestPrompts,
  selectPullRequestsFrom,
  selectPushes,
} from './store.ts'

type ParsedPullRequest = { action: string; pr: GivenPullRequest; isDefaultBase: boolean }

export function parsePullRequest(payload: PullRequestPayload, now: Date): ParsedPullRequest | 'ignored' {
  const { action, pull_request: given, repository } = payload
  if (!['opened', 'reopened', 'closed'].includes(action)) return 'ignored'
  const isMerged = action === 'closed' && given.merged === true
  const instant = (text: string | null | undefined) => parseInstant(text ?? '') ?? now
  const pr: GivenPullRequest = {
    number: given.number,
    url: sanitizeUrl(given.html_url),
    title: sanitizeTitle(given.title ?? ''),
    state: action !== 'closed' ? 'open' : isMerged ? 'merged' : 'closed',
    head_repository_id: given.head.repo ? repositoryIdOf(given.head.repo) : null,
    head_branch: sanitizeBranch(given.head.ref),
    head_sha: sanitizeSha(given.head.sha),
    base_branch: sanitizeBranch(given.base.ref),
    // For an open pull request GitHub sends a test merge, which is on no branch.
    merge_commit_sha: isMerged ? sanitizeSha(given.merge_commit_sha ?? given.head.sha) : null,
    commits: given.commits ?? 0,
    opened_by: accountPerson(given.user),
    opened_at: instant(given.created_at),
    merged_by: isMerged ? accountPerson(given.merged_by ?? given.user) : null,
    closed_at: action === 'closed' ? instant(isMerged ? given.merged_at : given.closed_at) : null,
  }
  return { action, pr, isDefaultBase: pr.base_branch === repository.default_branch }
}

/** The address is GitHub's no-reply one. A deleted account becomes ghost, as on GitHub. */
function accountPerson(account: Account | null | undefined): Person {
  const { login, id } = account ?? { login: 'ghost', id: 10_137 }
  return sanitizePerson({ name: login, email: `${id}+${login}@users.noreply.github.com` })
}

/** Stores the pull request and returns the entries that follow from its event. */
export async function recordPullRequest(sql: Sql, ref: RepositoryRef, parsed: ParsedPullRequest) {
  const { action, pr: given, isDefaultBase } = parsed
  const pr = await savePullRequest(sql, ref, given, action)
  const added = await addBranchPrompts(sql, ref, pr.number)
  if (action === 'reopened') return openedEntries(added, pr, pr.head_sha)
  const promptIds = await selectPullRequestPrompts(sql, ref, pr.number)
  if (action === 'opened') return openedEntries(promptIds, pr, pr.head_sha)
  if (pr.merge_commit_sha === null) return endedEntries(promptIds, pr)

  const head = { branch: pr.base_branch, commitSha: pr.merge_commit_sha }
  const covers = new Map<number, string[]>(promptIds.map((promptId) => [promptId, []]))
  // The push of the merge may have arrived first. For a fork, only that push shows which prompts the branch changes.
  for (const push of await selectPushes(sql, ref, head)) {
    for (const { promptId, commitSha, merge } of attributeCommits(push, await selectMerges(sql, ref, push))) {
      if (merge?.number === pr.number) covers.set(promptId, [...(covers.get(promptId) ?? []), commitSha])
    }
  }
  const merges = endedEntries([...covers.keys()], pr)
  const entries = merges.map((entry): PromptEntry => ({ ...entry, covers: covers.get(entry.prompt) ?? [] }))
  if (isDefaultBase) return entries
  // The merged prompts are now on the other branch, which may have a pull request too.
  const commits = [head.commitSha]
  const affected = [...covers.keys()].map((promptId) => ({ promptId, commits }))
  const push = { head, commits, isAllNew: false, affected }
  return [...entries, ...(await recordAffectedPrompts(sql, ref, push, pr.closed_at ?? pr.opened_at))]
}

/** Stores which prompts a push to a branch affects. Returns the entries of the pull requests from that branch. */
export async function recordAffectedPrompts(sql: Sql, ref: RepositoryRef, push: Push, pushedAt: Date) {
  await insertAffectedPrompts(sql, ref, push, pushedAt)
  const promptIds = push.affected.map(({ promptId }) => promptId)
  const entries: PromptEntry[] = []
  for (const pr of await selectPullRequestsFrom(sql, ref, push.head)) {
    const added = await addPrompts(sql, ref, pr.number, promptIds)
    // A pull request that ended at this commit was delivered before the push, and still lacks both entries.
    entries.push(...openedEntries(added, pr, push.head.commitSha), ...endedEntries(added, pr))
  }
  return entries
}

/** One `pr_opened` for each prompt, at the head of the branch when the prompt was first affected. */
function openedEntries(promptIds: number[], pr: PullRequest, commitSha: string): PromptEntry[] {
  const { number, url, title, opened_by: by, opened_at: at } = pr
  const entry = pullRequestEntry('pr_opened', pr.head_branch, { number, url, title, commitSha, by, at })
  return promptIds.map((prompt) => ({ prompt, entry }))
}

/** One `pr_merged` or `pr_closed` for each prompt; none while the pull request is open. */
function endedEntries(promptIds: number[], pr: PullRequest): PromptEntry[] {
  if (pr.state === 'open') return []
  const isMerged = pr.state === 'merged'
  const entry = isMerged
    ? pullRequestEntry('pr_merged', pr.base_branch, endOf(pr))
    : pullRequestEntry('pr_closed', pr.head_branch, endOf(pr))
  // Each closing is a separate entry.
  return promptIds.map((prompt) => ({ prompt, entry, reopenings: isMerged ? 0 : pr.reopenings }))
}

/** The merge of a pull request, or its closing at the head of its branch. */
export const endOf = (pr: PullRequest): PullRequestEvent => ({
  number: pr.number,
  url: pr.url,
  title: pr.title,
  commitSha: pr.merge_commit_sha ?? pr.head_sha,
  by: pr.merged_by ?? pr.opened_by,
  at: pr.closed_at ?? pr.opened_at,
})

/** Decides which commits of a push belong to which merged pull request: GitHub does not say, nor how it was merged. */
export function attributeCommits(push: Push, merges: MergedPullRequest[]) {
  const whole = merges.find((merge) => isWholePush(push, merge))
  const positions = new Map(push.commits.map((sha, position) => [sha, position]))
  const positionOf = (sha: string) => positions.get(sha) ?? -1
  const byCommit = new Map<string, MergedPullRequest>()
  for (const merge of merges) for (const sha of merge.branch_commits) byCommit.set(sha, merge)
  for (const merge of merges) byCommit.set(merge.merge_commit_sha, merge)
  // Squashed and rebased commits are not those of the branch, but they change the same prompts and end with the merge.
  const rewriting = merges
    .filter((merge) => !positions.has(merge.head_sha))
    .sort((a, b) => positionOf(a.merge_commit_sha) - positionOf(b.merge_commit_sha))
  const findRewriting = (promptId: number, commitSha: string) =>
    rewriting.find(
      (merge) => merge.prompt_ids.includes(promptId) && positionOf(commitSha) <= positionOf(merge.merge_commit_sha),
    )
  return push.affected.flatMap(({ promptId, commits }) =>
    commits.map((commitSha) => ({
      promptId,
      commitSha,
      merge: whole ?? byCommit.get(commitSha) ?? findRewriting(promptId, commitSha),
    })),
  )
}

/** A merge queue has pushed its commits to a temporary branch before; the rebase button has not. */
function isWholePush({ head, commits, isAllNew }: Push, merge: MergedPullRequest): boolean {
  const isNothingElse = merge.merge_commit_sha === head.commitSha && commits.length <= merge.commits + 1
  return isNothingElse && (commits.includes(merge.head_sha) || isAllNew)
}
