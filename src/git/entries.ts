// Decides which history entries follow from the commits that change prompts. Nothing here reads or writes anything.
import type { PromptEntry } from '../history/record.ts'
import type { NewHistoryEntry } from '../history/schema.ts'

export type Person = NewHistoryEntry['user']

/** What happened to a pull request, GitLab's merge requests included. */
export type PullRequestEvent = { number: number; url: string; commitSha: string; by: Person; at: Date }

/** A commit that changes the file of a prompt, at the time it reached the branch. */
export type PromptCommit = {
  /** The id of the prompt's row; in the plan of a sync, the position of the prompt. */
  prompt: number
  commitSha: string
  author: Person
  at: Date
  /**
   * The merge that brought the commit to the branch, with what it left there: the merge commit, the squashed one, or the
   * last of the rebased ones. Null for a commit that was pushed directly.
   */
  merge: PullRequestEvent | null
}

/**
 * The entries of what reached a branch, in the order of the commits: one for each commit that was pushed directly, by its
 * author, and one for each prompt that a pull request changes, at the place of its last commit.
 */
export function entriesOf(branch: string, commits: PromptCommit[]): PromptEntry[] {
  const entries = new Map<string, { prompt: number; entry: NewHistoryEntry; covers: Set<string> }>()
  for (const { prompt, commitSha, author, at, merge } of commits) {
    if (!merge) {
      const commit = { commit_sha: commitSha, branch_name: branch, created_at: at.toISOString() }
      const entry: NewHistoryEntry = { action: 'deployed', user: author, ...commit }
      entries.set(`${prompt} ${commitSha}`, { prompt, entry, covers: new Set() })
      continue
    }
    const key = `${prompt} ${merge.commitSha} ${merge.number}`
    const covers = entries.get(key)?.covers ?? new Set([merge.commitSha])
    // What is set anew after it was deleted comes last.
    entries.delete(key)
    entries.set(key, { prompt, entry: pullRequestEntry('pr_merged', branch, merge), covers: covers.add(commitSha) })
  }
  return [...entries.values()].map((entry) => ({ ...entry, covers: [...entry.covers] }))
}

/** A merge is an entry of the branch that was merged into; any other event is one of the pull request's own branch. */
export const pullRequestEntry = (
  action: 'pr_opened' | 'pr_merged' | 'pr_closed',
  branch: string,
  { number, url, commitSha, by, at }: PullRequestEvent,
): NewHistoryEntry => ({
  action,
  user: by,
  commit_sha: commitSha,
  branch_name: branch,
  pr_number: number,
  pr_url: url,
  created_at: at.toISOString(),
})
