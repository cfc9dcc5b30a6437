// Decides which history entries follow from the facts. Nothing here reads or writes anything.
import type { NewHistoryEntry } from '../history/schema.ts'
import type { Change, Merge, Person, PullRequestEvent } from './facts.ts'

/** An entry for the history of one prompt. */
export type EntryOf<Prompt> = {
  prompt: Prompt
  entry: NewHistoryEntry
  /** The commits that a merge brought to the branch, which are therefore not deployed by themselves. */
  covers: string[]
}

/**
 * The entries of what reached a branch, in the order of the changes: one for each commit that was pushed directly, and
 * one for each prompt that a pull request changes, at the place of its last commit.
 */
export function entriesOf<Prompt>(branch: string, changes: Change<Prompt>[]): EntryOf<Prompt>[] {
  const covered = new Map<string, Set<string>>()
  const keys = new Map<Prompt, number>()
  const keyOf = ({ prompt }: Change<Prompt>, { commitSha, number }: Merge) => {
    if (!keys.has(prompt)) keys.set(prompt, keys.size)
    return `${keys.get(prompt)} ${number} ${commitSha}`
  }
  for (const change of changes) {
    if (!change.merge) continue
    const key = keyOf(change, change.merge)
    covered.set(key, (covered.get(key) ?? new Set([change.merge.commitSha])).add(change.commitSha))
  }
  const entries: EntryOf<Prompt>[] = []
  for (const change of changes.toReversed()) {
    const { prompt, commitSha, author, at, merge } = change
    if (!merge) {
      entries.push({ prompt, entry: deployed(branch, commitSha, author, at), covers: [] })
      continue
    }
    const key = keyOf(change, merge)
    const covers = covered.get(key)
    if (covers) entries.push({ prompt, entry: merged(branch, merge), covers: [...covers] })
    covered.delete(key)
  }
  return entries.reverse()
}

/** A commit that was made on the branch itself, by its author. */
export const deployed = (branch: string, commitSha: string, author: Person, at: Date): NewHistoryEntry => ({
  action: 'deployed',
  user: author,
  commit_sha: commitSha,
  branch_name: branch,
  created_at: at.toISOString(),
})

const ofPullRequest =
  (action: 'pr_opened' | 'pr_merged' | 'pr_closed') =>
  (branch: string, { number, url, commitSha, by, at }: PullRequestEvent): NewHistoryEntry => ({
    action,
    user: by,
    commit_sha: commitSha,
    branch_name: branch,
    pr_number: number,
    pr_url: url,
    created_at: at.toISOString(),
  })

/** A pull request from the branch was opened, by its author, with the commit at which the prompt was first seen changed. */
export const opened = ofPullRequest('pr_opened')

/** A pull request was merged into the branch, by who merged it. */
export const merged = ofPullRequest('pr_merged')

/** A pull request from the branch was closed unmerged, at the head of the branch. */
export const closed = ofPullRequest('pr_closed')
