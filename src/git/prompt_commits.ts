import type { BranchCommit } from './branch_commits.ts'
import type { Commit } from './commits.ts'
import type { PromptCommit, PullRequestEvent } from './entries.ts'
import { isGitHub, pullRequestUrl } from './host.ts'
import type { Host } from './messages.ts'
import { sanitizePerson } from './sanitize.ts'

type Branch<Prompt> = {
  branchCommits: BranchCommit[]
  /** The prompts that each commit changes. */
  changed: Map<Commit, Prompt[]>
  /** When each commit of the first-parent line landed. */
  times: Map<Commit, Date>
  /** Known wherever there is a pull request. */
  host: Host | null
  webUrl: string | null
}

/** The commits that change prompts, oldest first. */
export function listPromptCommits<Prompt>(branch: Branch<Prompt>): PromptCommit<Prompt>[] {
  const { branchCommits, changed, times, host, webUrl } = branch
  const merges = new Map<Commit, PullRequestEvent>()

  function describeMerge({ sha, meaning, author, committer, parents }: Commit, at: Date): PullRequestEvent {
    const { number } = meaning as { number: number }
    const isSquash = parents.length < 2 && !isGitHub(committer)
    return {
      number,
      url: webUrl && host ? pullRequestUrl(webUrl, host, number) : '',
      commitSha: sha,
      by: isSquash ? sanitizePerson(committer, author) : sanitizePerson(author, committer),
      at,
    }
  }

  return branchCommits.flatMap(({ commit, landedWith, merge }): PromptCommit<Prompt>[] => {
    const prompts = changed.get(commit) ?? []
    if (prompts.length === 0) return []
    const at = times.get(landedWith) as Date
    const found = { commitSha: commit.sha, author: sanitizePerson(commit.author, commit.committer), at }
    if (!merge) return prompts.map((prompt) => ({ ...found, prompt, merge: null }))
    const event = merges.get(merge) ?? describeMerge(merge, at)
    merges.set(merge, event)
    // A pull request does not change a prompt whose change it reverts before the merge.
    const merged = changed.get(merge) ?? []
    return prompts.filter((prompt) => merged.includes(prompt)).map((prompt) => ({ ...found, prompt, merge: event }))
  })
}
