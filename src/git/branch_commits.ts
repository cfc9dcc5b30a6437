// Decides from the commit graph which commits landed on a branch, in which order and when, and which change prompts.
import { maxAheadMs } from '../history/schema.ts'
import { firstIndex } from '../lib/bisect.ts'
import { type HostKind, pullRequestUrl } from '../lib/repository_links.ts'
import { earlierOf } from '../lib/times.ts'
import { isGitHub, isPullRequest, type PromptCommit, type PullRequestEvent, sanitizePerson } from './entries.ts'
import type { BranchCommit, Commit } from './read.ts'

/**
 * Lists the commits that landed on a branch, oldest first. The merge of a pull request owns the commits of its other
 * side. Any other merge is flattened: its commits come first, and it follows with the changes made in the merge commit.
 * After a `git pull` of the branch into a clone (`isOwnPull`), the branch continues in the second parent.
 */
export function listBranchCommits(tip: Commit, isOwnPull: (commit: Commit) => boolean): BranchCommit[] {
  const seen = new Set<Commit>()
  const landed: BranchCommit[] = []
  // A stack instead of recursion, because merges can be nested as deep as there are commits.
  const stack: { commit: Commit; landedWith: Commit; step: 'line' | 'commit' | 'flattened' }[] = []

  function mainParentOf(commit: Commit): Commit | undefined {
    const [first, second] = commit.parents
    return second && isOwnPull(commit) ? second : first
  }

  /** Puts the first-parent line of a commit on the stack, back to the first commit that was seen. */
  function pushLine(start: Commit, landedWith?: Commit): void {
    for (let next: Commit | undefined = start; next && !seen.has(next); next = mainParentOf(next)) {
      seen.add(next)
      stack.push({ commit: next, landedWith: landedWith ?? next, step: 'commit' })
    }
  }

  /** Adds the commits of a pull request that have not been seen, oldest first. */
  function addPullRequest(merge: Commit, sides: Commit[], landedWith: Commit): void {
    const found: Commit[] = []
    const waiting = [...sides]
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      if (seen.has(next)) continue
      seen.add(next)
      found.push(next)
      waiting.push(...next.parents)
    }
    for (const commit of found.sort((a, b) => b.position - a.position)) {
      const { parents } = commit
      if (parents.length < 2) landed.push({ commit, parent: parents[0] ?? null, landedWith, merge })
    }
  }

  pushLine(tip)
  for (let top = stack.pop(); top; top = stack.pop()) {
    const { commit, landedWith, step } = top
    if (step === 'line') {
      pushLine(commit, landedWith)
      continue
    }
    if (step === 'flattened') {
      landed.push({ commit, parent: null, landedWith, merge: null })
      continue
    }
    const mainParent = mainParentOf(commit) ?? null
    const sides = commit.parents.filter((parent) => parent !== mainParent)
    const isMerge = isPullRequest(commit.meaning)
    if (sides.length === 0 || isMerge) {
      addPullRequest(commit, sides, landedWith)
      landed.push({ commit, parent: mainParent, landedWith, merge: isMerge ? commit : null })
    } else {
      stack.push({ commit, landedWith, step: 'flattened' })
      // One side after the other: commits that two sides share come with the first one.
      for (const side of sides.reverse()) stack.push({ commit: side, landedWith, step: 'line' })
    }
  }
  return landed
}

/**
 * When each commit of the first-parent line landed, by its committer's clock. Times far in the future are wrong. Keeps the
 * longest non-decreasing sequence of the others; every other time is wrong. A wrong time becomes that of the last correct
 * commit before it, or of the first correct one.
 */
export function listLandingTimes(branchCommits: BranchCommit[], now: Date): Map<Commit, Date> {
  const line = [...new Set(branchCommits.map(({ landedWith }) => landedWith))]
  const correct = new Set(longestRise(line.filter(({ time }) => time <= now.getTime() + maxAheadMs)))
  let last = line.find((commit) => correct.has(commit))?.time ?? now.getTime()
  return new Map(
    line.map((commit) => {
      if (correct.has(commit)) last = commit.time
      return [commit, earlierOf(new Date(last), now)]
    }),
  )
}

/**
 * The longest subsequence whose times never fall. Of several, the one with the earliest commits: their times are recorded
 * already if each commit was synced when it landed.
 */
function longestRise(commits: Commit[]): Commit[] {
  /** For each length, the commits that end a subsequence of that length. Their times fall. */
  const ends: Commit[][] = []
  for (const commit of commits) {
    const index = firstIndex(ends, (ofLength) => (ofLength.at(-1) as Commit).time > commit.time)
    const ofLength = ends[index]
    if (ofLength) ofLength.push(commit)
    else ends.push([commit])
  }
  const found: Commit[] = []
  for (const ofLength of ends.toReversed()) {
    const next = found.at(-1)?.time ?? Number.POSITIVE_INFINITY
    found.push(ofLength[firstIndex(ofLength, ({ time }) => time <= next)] as Commit)
  }
  return found
}

type Branch<Prompt> = {
  branchCommits: BranchCommit[]
  changed: Map<Commit, Prompt[]>
  times: Map<Commit, Date>
  /** Of the commits that change prompts. */
  titles: Map<Commit, string | null>
  host: HostKind | null
  webUrl: string
}

/** The commits that change prompts, oldest first. */
export function listPromptCommits<Prompt>(branch: Branch<Prompt>): PromptCommit<Prompt>[] {
  const { branchCommits, changed, times, titles, host, webUrl } = branch

  function describeMerge(merge: Commit, at: Date): PullRequestEvent {
    const { sha, meaning, author, committer, parents } = merge
    const { number, host: writtenBy } = meaning as { number: number; host: HostKind | null }
    // A number that another host wrote is another pull request here.
    const isOfHost = host !== null && (writtenBy === null || writtenBy === host)
    const isSquash = parents.length < 2 && !isGitHub(committer)
    return {
      number,
      url: isOfHost ? pullRequestUrl(webUrl, host, number) : null,
      title: titles.get(merge) ?? null,
      commitSha: sha,
      by: isSquash ? sanitizePerson(committer, author) : sanitizePerson(author, committer),
      authors: parents.length < 2 ? [sanitizePerson(author, committer).name] : [],
      at,
    }
  }

  return branchCommits.flatMap(({ commit, landedWith, merge }): PromptCommit<Prompt>[] => {
    const prompts = changed.get(commit) ?? []
    if (prompts.length === 0) return []
    const at = times.get(landedWith) as Date
    const title = titles.get(commit) ?? null
    const found = { commitSha: commit.sha, title, author: sanitizePerson(commit.author, commit.committer), at }
    if (!merge) return prompts.map((prompt) => ({ ...found, prompt, merge: null }))
    const event = describeMerge(merge, at)
    // A pull request does not change a prompt whose change it reverts before the merge.
    const merged = changed.get(merge) ?? []
    return prompts.filter((prompt) => merged.includes(prompt)).map((prompt) => ({ ...found, prompt, merge: event }))
  })
}
