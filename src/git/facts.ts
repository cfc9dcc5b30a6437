// What a source of changes, a clone or a webhook, can say of a branch.

export type Person = { name: string; email: string }

/** What happened to a pull request, GitLab's merge requests included. */
export type PullRequestEvent = { number: number; url: string; commitSha: string; by: Person; at: Date }

/**
 * A merge, by who merged. Its commit is what it left on the branch: the merge commit, the squashed one, or the last of the
 * rebased ones.
 */
export type Merge = PullRequestEvent

/** A commit that changes the file of a prompt, at the time it reached the branch. */
export type Change<Prompt> = {
  prompt: Prompt
  commitSha: string
  author: Person
  at: Date
  /** The pull request that brought the commit to the branch; null for a commit that was pushed directly. */
  merge: Merge | null
}
