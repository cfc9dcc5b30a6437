// Decides which history entries follow from the facts. Nothing here reads or writes anything.

import type { Person } from '../git/facts.ts'
import type { PromptEntry } from '../history/record.ts'
import type { NewHistoryEntry } from '../history/schema.ts'
import type { LinkedPrompt } from '../prompts/link.ts'
import type { Commit, Head, Merge, PullRequest, Push, Touch } from './facts.ts'

/** The prompts whose files the commits touch, each with the commits that do. */
export function findTouches(commits: Commit[], linked: LinkedPrompt[]): Touch[] {
  const touches = new Map(linked.map(({ id, path }) => [path, { promptId: id, commits: [] as string[] }]))
  for (const { sha, files } of commits) {
    for (const path of files) touches.get(path)?.commits.push(sha)
  }
  return [...touches.values()].filter((touch) => touch.commits.length > 0)
}

/** The same entry for each of the prompts. */
export const entriesForPrompts = (promptIds: number[], entry: NewHistoryEntry | undefined): PromptEntry[] =>
  entry ? promptIds.map((promptId) => ({ promptId, entry })) : []

/** A `deployed` entry for each prompt, by the author of the last commit that touches it. */
export function deployed(touches: Touch[], { branch, commitSha }: Head, commits: Commit[], at: Date): PromptEntry[] {
  const authors = new Map(commits.map(({ sha, author }) => [sha, author]))
  return touches.map(({ promptId, commits }) => ({
    promptId,
    entry: {
      action: 'deployed',
      user: authors.get(commits.at(-1) as string) as Person,
      commit_sha: commitSha,
      branch_name: branch,
      created_at: at.toISOString(),
    },
  }))
}

/** The commit is the head of the branch at which the prompt was first seen to be changed. */
export const opened = (pr: PullRequest, commitSha: string): NewHistoryEntry => ({
  action: 'pr_opened',
  user: openerOf(pr),
  commit_sha: commitSha,
  branch_name: pr.headBranch,
  ...numberOf(pr),
  created_at: pr.openedAt.toISOString(),
})

/** How a pull request ended; undefined for one that is open. */
export function ended(pr: PullRequest): NewHistoryEntry | undefined {
  const created_at = (pr.closedAt ?? pr.openedAt).toISOString()
  if (pr.state === 'closed') {
    const branch = { commit_sha: pr.headSha, branch_name: pr.headBranch }
    return { action: 'pr_closed', user: openerOf(pr), ...branch, ...numberOf(pr), created_at }
  }
  if (pr.state === 'open' || pr.mergeCommitSha === null) return undefined
  const user = { name: pr.mergedByName ?? pr.openedByName, email: pr.mergedByEmail ?? pr.openedByEmail }
  const branch = { commit_sha: pr.mergeCommitSha, branch_name: pr.baseBranch }
  return { action: 'pr_merged', user, ...branch, ...numberOf(pr), created_at }
}

const openerOf = (pr: PullRequest): Person => ({ name: pr.openedByName, email: pr.openedByEmail })
const numberOf = (pr: PullRequest) => ({ pr_number: pr.number, pr_url: pr.url })

/** The entries of the merges that a push brings, and the touches that belong to none of them. */
export function attributeCommitsToMerges(push: Push, merges: Merge[]): { merged: PromptEntry[]; direct: Touch[] } {
  const merged: PromptEntry[] = []
  let direct = push.touches
  for (const merge of merges) {
    const matches = matchCommits(push, merge)
    merged.push(...entriesForPrompts(promptIdsOf(filterCommits(push.touches, matches)), ended(merge)))
    direct = filterCommits(direct, (commit, promptId) => !matches(commit, promptId))
  }
  return { merged, direct }
}

/**
 * The prompts that an earlier push shows to be changed by a merge, each with the commit of the `deployed` entry that
 * was recorded for that push; null when a commit of no pull request deployed the prompt as well.
 */
export function findMergedPrompts(push: Push, merges: Merge[], number: number): [number, string | null][] {
  const direct = new Set(promptIdsOf(attributeCommitsToMerges(push, merges).direct))
  const own = merges.filter((merge) => merge.number === number)
  return own.flatMap((merge) =>
    promptIdsOf(filterCommits(push.touches, matchCommits(push, merge))).map((promptId): [number, string | null] => [
      promptId,
      direct.has(promptId) ? null : push.head.commitSha,
    ]),
  )
}

type CommitMatcher = (commit: string, promptId: number) => boolean

/**
 * Which commits of a push belong to a pull request whose merge is one of them. GitHub does not say it, nor how the pull
 * request was merged, and lists the commits of several branches by their time.
 */
function matchCommits({ head, commits, isAllNew }: Push, merge: Merge): CommitMatcher {
  const isMergeCommit = commits.includes(merge.headSha)
  // A merge queue has pushed its commits before, to a branch of its own; the rebase button has not.
  const isNothingElse = merge.mergeCommitSha === head.commitSha && commits.length <= merge.commits + 1
  if (isNothingElse && (isMergeCommit || isAllNew)) return () => true

  const onBranch = new Set(merge.branchCommits)
  // Squashed or rebased commits are others than those of the branch, but touch the same prompts.
  const rewritten = new Set(isMergeCommit ? [] : merge.promptIds)
  return (commit, promptId) => commit === merge.mergeCommitSha || onBranch.has(commit) || rewritten.has(promptId)
}

const filterCommits = (touches: Touch[], matches: CommitMatcher): Touch[] =>
  touches
    .map(({ promptId, commits }) => ({ promptId, commits: commits.filter((commit) => matches(commit, promptId)) }))
    .filter(({ commits }) => commits.length > 0)

const promptIdsOf = (touches: Touch[]): number[] => touches.map(({ promptId }) => promptId)
