// What pushes and pull requests amount to, as a webhook reports them. Nothing here reads or writes anything.
import type { PromptEntry } from '../history/record.ts'
import type { NewHistoryEntry } from '../history/schema.ts'
import type { LinkedPrompt } from '../prompts/link.ts'
import type { FileSeen } from '../prompts/seen.ts'
import { closed, merged, opened } from './entries.ts'
import type { Merge, Person } from './facts.ts'

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
type Touch = { promptId: number; commits: string[] }

export type Push = {
  head: Head
  /** The SHAs of all its commits, oldest first. */
  commits: string[]
  /** Whether none of them was pushed before, to another branch. */
  isAllNew: boolean
  touches: Touch[]
}

/** The prompts whose files the commits touch, each with the commits that do. */
export function findTouches(commits: Commit[], linked: LinkedPrompt[]): Touch[] {
  const touches = new Map(linked.map(({ id, path }) => [path, { promptId: id, commits: [] as string[] }]))
  for (const { sha, added, modified, removed } of commits) {
    for (const path of new Set([...added, ...modified, ...removed])) touches.get(path)?.commits.push(sha)
  }
  return [...touches.values()].filter((touch) => touch.commits.length > 0)
}

/** How the commits leave the files of the prompts that they touch. */
export function findFilesSeen(commits: Commit[], linked: LinkedPrompt[], at: Date): FileSeen[] {
  const last = new Map<string, Commit>()
  for (const commit of commits) {
    for (const path of [...commit.added, ...commit.modified, ...commit.removed]) last.set(path, commit)
  }
  return linked.flatMap(({ id: promptId, path }): FileSeen[] => {
    const commit = last.get(path)
    if (!commit) return []
    const isRemoved = commit.removed.includes(path)
    const movedTo = isRemoved ? findMovedTo(path, commit) : null
    return [{ promptId, state: !isRemoved ? 'present' : movedTo === null ? 'removed' : 'renamed', movedTo, at }]
  })
}

/** A push says of a renamed file that it was removed, and of another that it was added: the only one, or of the same name. */
function findMovedTo(path: string, { added, removed }: Commit): string | null {
  if (added.length === 1 && removed.length === 1) return added[0] as string
  const namesakes = added.filter((other) => nameOf(other) === nameOf(path))
  return namesakes.length === 1 ? (namesakes[0] as string) : null
}

const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)

/** The same entry for each of the prompts. */
export const entriesForPrompts = (promptIds: number[], entry: NewHistoryEntry | undefined): PromptEntry[] =>
  entry ? promptIds.map((promptId) => ({ promptId, entry })) : []

/** How a pull request ended for each of the prompts: each closing is an entry of its own. */
export const endedEntries = (promptIds: number[], pr: PullRequest): PromptEntry[] =>
  entriesForPrompts(promptIds, endedEntry(pr)).map((entry) =>
    pr.state === 'closed' ? { ...entry, reopenings: pr.reopenings } : entry,
  )

/** The commit is the head of the branch at which the prompt was first seen to be changed. */
export const openedEntry = (pr: PullRequest, commitSha: string): NewHistoryEntry =>
  opened(pr.headBranch, { ...pr, commitSha, by: pr.openedBy, at: pr.openedAt })

/** How a pull request ended; undefined for one that is open. */
function endedEntry(pr: PullRequest): NewHistoryEntry | undefined {
  if (pr.state === 'closed') return closed(pr.headBranch, { ...pr, commitSha: pr.headSha, ...closingOf(pr) })
  const merge = mergeOf(pr)
  return merge && merged(pr.baseBranch, merge)
}

/** The merge of a pull request; undefined for one that is not merged. */
export const mergeOf = (pr: PullRequest): Merge | undefined =>
  pr.mergeCommitSha === null ? undefined : { ...pr, commitSha: pr.mergeCommitSha, ...closingOf(pr) }

const closingOf = ({ openedBy, openedAt, mergedBy, closedAt }: PullRequest) => ({
  by: mergedBy ?? openedBy,
  at: closedAt ?? openedAt,
})

/** A commit that changes the file of a prompt, with the pull request whose merge brought it; undefined for none. */
type Attributed = { promptId: number; commitSha: string; merge: MergedPullRequest | undefined }

/**
 * Which commits of a push belong to which of the merges that it brings. GitHub does not say it, nor how a pull request
 * was merged, and lists the commits of several branches by their time.
 */
export function attributeCommits(push: Push, merges: MergedPullRequest[]): Attributed[] {
  const whole = merges.find((merge) => isWholePush(push, merge))
  const places = new Map(push.commits.map((sha, place) => [sha, place]))
  const placeOf = (sha: string | null) => places.get(sha ?? '') ?? -1
  const byCommit = new Map<string, MergedPullRequest>()
  for (const merge of merges) for (const sha of merge.branchCommits) byCommit.set(sha, merge)
  for (const merge of merges) byCommit.set(merge.mergeCommitSha as string, merge)
  // Squashed or rebased commits are others than those of the branch, but touch the same prompts, and end with the merge's.
  const rewriting = merges
    .filter((merge) => !places.has(merge.headSha))
    .sort((a, b) => placeOf(a.mergeCommitSha) - placeOf(b.mergeCommitSha))
  const findRewriting = (promptId: number, commitSha: string) =>
    rewriting.find((merge) => merge.promptIds.includes(promptId) && placeOf(commitSha) <= placeOf(merge.mergeCommitSha))
  return push.touches.flatMap(({ promptId, commits }) =>
    commits.map((commitSha) => ({
      promptId,
      commitSha,
      merge: whole ?? byCommit.get(commitSha) ?? findRewriting(promptId, commitSha),
    })),
  )
}

/** A merge queue has pushed its commits before, to a branch of its own; the rebase button has not. */
function isWholePush({ head, commits, isAllNew }: Push, merge: MergedPullRequest): boolean {
  const isNothingElse = merge.mergeCommitSha === head.commitSha && commits.length <= merge.commits + 1
  return isNothingElse && (commits.includes(merge.headSha) || isAllNew)
}
