// What pushes and pull requests have shown of a repository.
import type { Person } from '../git/facts.ts'

/** A repository of one organisation: its owner/name in lower case. */
export type RepositoryRef = { organisationId: number; repository: string }

export type Commit = { sha: string; author: Person; files: string[] }

export type PullRequest = {
  number: number
  url: string
  state: 'open' | 'merged' | 'closed'
  /** Null when that fork is gone. */
  headRepository: string | null
  headBranch: string
  headSha: string
  baseBranch: string
  mergeCommitSha: string | null
  /** How many commits its branch has. */
  commits: number
  openedByName: string
  openedByEmail: string
  openedAt: Date
  mergedByName: string | null
  mergedByEmail: string | null
  closedAt: Date | null
}

/** A merged pull request, with the commits that were pushed to its branch and the prompts that it is known to change. */
export type Merge = PullRequest & { branchCommits: string[]; promptIds: number[] }

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
