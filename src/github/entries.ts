import type { NewHistoryEntry } from '../history/schema.ts'
import type { Person } from './people.ts'
import type { Head, PullRequest } from './store.ts'

/** What the history says of a commit that went to the default branch without a pull request. */
export const deployed = ({ branch, commitSha }: Head, user: Person, at: Date): NewHistoryEntry => ({
  action: 'deployed',
  user,
  commit_sha: commitSha,
  branch_name: branch,
  created_at: at.toISOString(),
})

/** The commit is the head of the branch at which the prompt was first seen to be changed. */
export const opened = (pr: PullRequest, commitSha: string): NewHistoryEntry => ({
  action: 'pr_opened',
  user: openerOf(pr),
  commit_sha: commitSha,
  branch_name: pr.headBranch,
  ...numbered(pr),
  created_at: pr.openedAt.toISOString(),
})

/** How a pull request ended; undefined for one that is open. */
export function ended(pr: PullRequest): NewHistoryEntry | undefined {
  const created_at = (pr.closedAt ?? pr.openedAt).toISOString()
  if (pr.state === 'closed') {
    const branch = { commit_sha: pr.headSha, branch_name: pr.headBranch }
    return { action: 'pr_closed', user: openerOf(pr), ...branch, ...numbered(pr), created_at }
  }
  if (pr.state === 'open' || pr.mergeCommitSha === null) return undefined
  const user = { name: pr.mergedByName ?? pr.openedByName, email: pr.mergedByEmail ?? pr.openedByEmail }
  const branch = { commit_sha: pr.mergeCommitSha, branch_name: pr.baseBranch }
  return { action: 'pr_merged', user, ...branch, ...numbered(pr), created_at }
}

const openerOf = (pr: PullRequest): Person => ({ name: pr.openedByName, email: pr.openedByEmail })
const numbered = (pr: PullRequest) => ({ pr_number: pr.number, pr_url: pr.url })
