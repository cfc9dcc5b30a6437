import type { MergedPullRequest, Push } from './store_pushes.ts'

/** A commit that changes a prompt, and the merged pull request that brought it; undefined if none did. */
type AttributedCommit = { promptId: number; commitSha: string; merge: MergedPullRequest | undefined }

/**
 * Decides which commits of a push belong to which of its merged pull requests. GitHub says neither that nor how a pull
 * request was merged, and it lists the commits of several branches by time.
 */
export function attributeCommits(push: Push, merges: MergedPullRequest[]): AttributedCommit[] {
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
