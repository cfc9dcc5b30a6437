// What pushes and pull requests have shown of a repository.
import type { Person } from '../git/facts.ts'

/** A repository that delivers to an organisation, by GitHub's id of it, which outlives every name. */
export type RepositoryRef = { organisationId: number; repositoryId: number }

/** A commit, with the files that it itself changes: none for one that merely merges another branch in. */
export type Commit = { sha: string; author: Person; added: string[]; modified: string[]; removed: string[] }

export type PullRequest = {
  number: number
  url: string
  state: 'open' | 'merged' | 'closed'
  /** Null when that fork is gone. */
  headRepositoryId: number | null
  headBranch: string
  headSha: string
  baseBranch: string
  mergeCommitSha: string | null
  /** How many commits its branch has. */
  commits: number
  openedBy: Person
  openedAt: Date
  mergedBy: Person | null
  closedAt: Date | null
  /** How often it was reopened. */
  reopenings: number
}

/** A merged pull request, with the commits that were pushed to its branch and the prompts that it is known to change. */
export type MergedPullRequest = PullRequest & { branchCommits: string[]; promptIds: number[] }

/** The head of a branch after a push, or after a merge into it. */
export type Head = { branch: string; commitSha: string }

/** A prompt, and the commits that touch its file, oldest first. */
export type Touch = { promptId: number; commits: string[] }

export type Push = {
  head: Head
  /** The SHAs of all its commits, oldest first. */
  commits: string[]
  /** Whether none of them was pushed before, to another branch. */
  isAllNew: boolean
  touches: Touch[]
}
