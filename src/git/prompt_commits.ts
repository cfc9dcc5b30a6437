import type { Arrival } from './arrivals.ts'
import type { Commit } from './commits.ts'
import type { Person, PromptCommit, PullRequestEvent } from './entries.ts'
import { fitPerson } from './fit.ts'
import { type Host, isPullRequest, plain } from './messages.ts'
import { hostOf, pullRequestUrl } from './remote.ts'

/** GitHub commits for its users, and then only the author is a person. On servers of one's own the address can be set. */
const isGitHub = ({ name, email }: Person): boolean => email === 'noreply@github.com' || name === 'GitHub Enterprise'

/** The host of a repository: by its address, else by what most merges of its pull requests look like; null for neither. */
export function findHost(commits: Commit[], webUrl: string | null): Host | null {
  const known = hostOf(webUrl)
  if (known) return known
  const counts = new Map<Host, number>()
  for (const { meaning, committer } of commits) {
    if (!isPullRequest(meaning)) continue
    const host = meaning.host ?? (isGitHub(committer) ? 'github' : null)
    if (host) counts.set(host, (counts.get(host) ?? 0) + 1)
  }
  return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0] ?? null
}

/** The hosts on which #12 is a pull request: on the others it is an issue, or nothing that is known. */
const namingByNumber: (Host | null)[] = ['github', 'gitea']

/** The commits with the meanings that their messages have on a host. */
export const interpretForHost = (commits: Commit[], host: Host | null): Commit[] =>
  commits.map((commit) => {
    const { meaning } = commit
    if (!isPullRequest(meaning)) return commit
    // A merge commit of another host may have come with a move from there.
    const isOfAnyHost = meaning.kind === 'pull_request' && meaning.host !== null
    const isOfHost = meaning.host === null ? namingByNumber.includes(host) : meaning.host === host
    return isOfAnyHost || isOfHost ? commit : { ...commit, meaning: plain }
  })

type Branch = {
  commits: Commit[]
  arrivals: Arrival[]
  times: Map<number, Date>
  /** Known wherever there is a pull request. */
  host: Host | null
  webUrl: string | null
}

/** The commits that change prompts, oldest first; `touched` has the prompts that each arrival changes. */
export function listPromptCommits(branch: Branch, touched: number[][]): PromptCommit[] {
  const { commits, arrivals, times, host, webUrl } = branch
  const at = (position: number) => commits[position] as Commit
  const indexes = new Map(arrivals.map(({ commit }, index) => [commit, index]))
  const merges = new Map<number, PullRequestEvent>()

  function describeMerge(position: number, via: number): PullRequestEvent {
    const { sha, meaning, author, committer, parents } = at(position)
    const { number } = meaning as { number: number }
    const isSquash = parents.length < 2 && !isGitHub(committer)
    return {
      number,
      url: webUrl && host ? pullRequestUrl(webUrl, host, number) : '',
      commitSha: sha,
      by: isSquash ? fitPerson(committer, author) : fitPerson(author, committer),
      at: times.get(via) as Date,
    }
  }

  return arrivals.flatMap(({ commit, via, merge }, index): PromptCommit[] => {
    const { sha, author, committer } = at(commit)
    const found = { commitSha: sha, author: fitPerson(author, committer), at: times.get(via) as Date }
    const prompts = touched[index] ?? []
    if (merge === null || prompts.length === 0) return prompts.map((prompt) => ({ ...found, prompt, merge: null }))
    const mergeOf = merges.get(merge) ?? describeMerge(merge, via)
    merges.set(merge, mergeOf)
    // What a pull request reverts before it is merged, it does not change.
    const merged = touched[indexes.get(merge) as number] ?? []
    return prompts.filter((prompt) => merged.includes(prompt)).map((prompt) => ({ ...found, prompt, merge: mergeOf }))
  })
}
