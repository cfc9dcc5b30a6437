import type { Sql } from '../db/client.ts'
import { entriesOf, type PullRequestEvent, pullRequestEntry } from '../git/entries.ts'
import type { PromptEntry } from '../history/record.ts'
import type { Commit, ParsedPush } from './push_payload.ts'
import {
  addPrompts,
  type Closing,
  deletePushesTo,
  insertAffectedPrompts,
  type MergedPullRequest,
  type PullRequest,
  type Push,
  type PushWindow,
  type RepositoryRef,
  selectBranchPushes,
  selectMerges,
  selectPullRequestsFrom,
} from './store.ts'

/** Stores the push and returns the entries that follow from it. */
export async function recordPush(sql: Sql, repo: RepositoryRef, parsed: ParsedPush): Promise<PromptEntry[]> {
  const { push, bySha, isDefaultBranch, isNewBranch, pushedAt } = parsed
  if (isNewBranch) await deletePushesTo(sql, repo, push.head.branch, pushedAt)
  const branchEntries = await recordBranchPush(sql, repo, push, pushedAt)
  const commits = attributeCommits(push, await readMerges(sql, repo, push)).map(({ promptId, commitSha, merge }) => {
    const { title, author } = bySha.get(commitSha) as Commit
    return { prompt: promptId, commitSha, title, author, at: pushedAt, merge: merge ? mergeOf(merge) : null }
  })
  const entries = entriesOf(push.head.branch, commits)
  // A commit on another branch is not live.
  return [...entries.filter(({ entry }) => isDefaultBranch || entry.action !== 'deployed'), ...branchEntries]
}

/** Stores which prompts a push to a branch affects. Returns the entries of the pull requests from that branch. */
export async function recordBranchPush(sql: Sql, repo: RepositoryRef, push: Push, pushedAt: Date) {
  await insertAffectedPrompts(sql, repo, push, pushedAt)
  if (push.affected.length === 0) return []
  const { branch, commitSha } = push.head
  const entries: PromptEntry[] = []
  const fromBranch = await selectPullRequestsFrom(sql, repo, branch)
  for (const pr of fromBranch.filter(({ base_branch }) => base_branch !== branch)) {
    if (!isInWindow({ at: pushedAt, commitSha }, windowOf(pr, fromBranch))) continue
    const pushes = await selectBranchPushes(sql, repo, windowOf(pr, fromBranch))
    const promptIds = pushes.map(({ promptId }) => promptId)
    const added = await addPrompts(sql, repo, pr.number, promptIds)
    // Events of the pull request may have arrived before the push, without these prompts. But what else a merge brought is
    // only known from its own push: the branch may have been merged before, which was not reported yet.
    const isKnownToMerge = pr.state === 'merged' && pr.head_sha === commitSha
    const closings = pr.closings.filter(({ at, sha }) => pushedAt <= new Date(at) || sha === commitSha)
    const affected = push.affected.map(({ promptId }) => promptId).filter((promptId) => promptIds.includes(promptId))
    entries.push(...openedEntries(added, pr), ...closedEntries(affected, pr, closings))
    entries.push(...(isKnownToMerge ? mergedEntries(added, pr) : []))
  }
  return entries
}

/** One `pr_opened` for each prompt, at the head when the pull request was opened; none before that event arrived. */
export function openedEntries(promptIds: number[], pr: PullRequest): PromptEntry[] {
  const { number, url, title, opened_by: by, opened_at: at, opened_sha: commitSha } = pr
  if (commitSha === null) return []
  const entry = pullRequestEntry('pr_opened', pr.head_branch, {
    ...{ number, url, title, commitSha, by, at },
    authors: [],
  })
  return promptIds.map((prompt) => ({ prompt, entry, covers: [] }))
}

export const closedEntries = (promptIds: number[], pr: PullRequest, closings: Closing[]): PromptEntry[] =>
  closings.flatMap(({ at, sha }) => {
    const { number, url, title, opened_by: by } = pr
    const event = { number, url, title, commitSha: sha, by, authors: [], at: new Date(at) }
    const entry = pullRequestEntry('pr_closed', pr.head_branch, event)
    return promptIds.map((prompt) => ({ prompt, entry, covers: [] }))
  })

export function mergedEntries(promptIds: number[], pr: PullRequest): PromptEntry[] {
  const entry = pullRequestEntry('pr_merged', pr.base_branch, mergeOf(pr))
  return promptIds.map((prompt) => ({ prompt, entry, covers: [] }))
}

const mergeOf = (pr: PullRequest): PullRequestEvent => ({
  number: pr.number,
  url: pr.url,
  title: pr.title,
  commitSha: pr.merge_commit_sha ?? pr.head_sha,
  by: pr.merged_by ?? pr.opened_by,
  // The event has no commits.
  authors: [pr.opened_by.name],
  at: pr.closed_at ?? pr.opened_at,
})

type BranchUse = Pick<
  PullRequest,
  'number' | 'state' | 'head_branch' | 'head_sha' | 'base_branch' | 'opened_at' | 'closed_at'
>

/** From the last time that the branch was merged into the same base, until the pull request ended, at least to its head. */
export function windowOf(pr: BranchUse, fromBranch: BranchUse[]): PushWindow {
  const merges = fromBranch.flatMap(({ number, state, base_branch, closed_at }) => {
    const isOther = number !== pr.number && state === 'merged' && base_branch === pr.base_branch
    return isOther && closed_at && (!pr.closed_at || closed_at < pr.closed_at) ? [closed_at.getTime()] : []
  })
  const since = merges.length > 0 ? new Date(Math.max(...merges)) : null
  const { head_branch: branch, head_sha: headSha, base_branch: base, opened_at: openedAt, closed_at: until } = pr
  return { branch, since, until, headSha, base, openedAt }
}

export const isInWindow = (push: { at: Date; commitSha: string }, { since, until, headSha }: PushWindow): boolean =>
  (!since || push.at > since) && (!until || push.at <= until || push.commitSha === headSha)

/** Reads the pushes to the branch of a pull request that belong to it, or did when it was closed; none for a fork. */
export async function readBranchPushes(sql: Sql, repo: RepositoryRef, given: PullRequest) {
  const fromBranch = await selectPullRequestsFrom(sql, repo, given.head_branch)
  const stored = fromBranch.find((pr) => pr.number === given.number)
  const pr = given.state === 'closed' ? given : stored
  return stored && pr ? selectBranchPushes(sql, repo, windowOf(pr, fromBranch)) : []
}

export async function readMerges(sql: Sql, repo: RepositoryRef, push: Push): Promise<MergedPullRequest[]> {
  const merges: MergedPullRequest[] = []
  for (const merge of await selectMerges(sql, repo, push)) {
    const pushes = await readBranchPushes(sql, repo, merge)
    merges.push({ ...merge, branch_shas: pushes.flatMap(({ shas }) => shas) })
  }
  return merges
}

/** Decides which commits of a push belong to which merged pull request. GitHub does not say, nor how it was merged. */
export function attributeCommits(push: Push, merges: MergedPullRequest[]) {
  const onlyMerge = merges.find((merge) => isOnlyThisMerge(push, merge))
  const positions = new Map(push.shas.map((sha, position) => [sha, position]))
  const positionOf = (sha: string) => positions.get(sha) ?? -1
  const byCommit = new Map<string, MergedPullRequest>()
  for (const merge of merges) for (const sha of merge.branch_shas) byCommit.set(sha, merge)
  // Last, so that a merge commit belongs to its own pull request, also if it is on the branch of another.
  for (const merge of merges) byCommit.set(merge.merge_commit_sha, merge)
  // Squashed and rebased commits are not those of the branch. They change the same prompts, and the merge is their last.
  const rewriting = merges
    .filter((merge) => !positions.has(merge.head_sha))
    .sort((a, b) => positionOf(a.merge_commit_sha) - positionOf(b.merge_commit_sha))
  const findRewriting = (promptId: number, commitSha: string) =>
    rewriting.find(
      (merge) => merge.prompt_ids.includes(promptId) && positionOf(commitSha) <= positionOf(merge.merge_commit_sha),
    )
  return push.affected.flatMap(({ promptId, shas }) =>
    shas.map((commitSha) => ({
      promptId,
      commitSha,
      merge: onlyMerge ?? byCommit.get(commitSha) ?? findRewriting(promptId, commitSha),
    })),
  )
}

/**
 * Whether the push brought this merge and nothing else. Its commits are the branch's own, or all new (squash and rebase
 * buttons). A merge queue pushes them to a temporary branch first, so they are not new.
 */
function isOnlyThisMerge({ head, shas, isAllNew }: Push, merge: MergedPullRequest): boolean {
  const mayBeOnly = merge.merge_commit_sha === head.commitSha && shas.length <= merge.commit_count + 1
  return mayBeOnly && (shas.includes(merge.head_sha) || isAllNew)
}
