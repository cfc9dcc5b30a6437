import { posix } from 'node:path'
import type { Sql } from '../db/client.ts'
import {
  entriesOf,
  type Person,
  type PullRequestEvent,
  pullRequestEntry,
  sanitizeBranch,
  sanitizePerson,
  sanitizeSha,
  sanitizeTitle,
} from '../git/entries.ts'
import { isMergeCommit, titleOf } from '../git/messages.ts'
import type { PromptEntry } from '../history/record.ts'
import { earlierOf } from '../lib/times.ts'
import type { FileSeen, LinkedPrompt } from '../prompts/link.ts'
import { type Gap, type PushPayload, parseTimestamp } from './schema.ts'
import {
  addPrompts,
  deletePushesTo,
  insertAffectedPrompts,
  type MergedPullRequest,
  type PullRequest,
  type Push,
  type RepositoryRef,
  selectMerges,
  selectPullRequestsFrom,
} from './store.ts'

/** A commit with the files that it changes; a merge of another branch has none. */
type Commit = {
  sha: string
  title: string | null
  author: Person
  added: string[]
  modified: string[]
  removed: string[]
}

type ParsedPush = Exclude<ReturnType<typeof parsePush>, string>

const branches = 'refs/heads/'
/** The most commits that GitHub lists in a push. */
const maxListedCommits = 2_048

/** Parses a push, or says why it changes nothing. */
export function parsePush(payload: PushPayload, linked: LinkedPrompt[], now: Date) {
  if (payload.deleted || !payload.ref.startsWith(branches)) return 'ignored'
  const branch = payload.ref.slice(branches.length)
  const isDefaultBranch = branch === payload.repository.default_branch
  const isNewBranch = payload.created === true && !isDefaultBranch
  // On other branches, a commit that was pushed before came from the default branch by a merge or a rebase.
  const commits = payload.commits.filter(({ distinct }) => isDefaultBranch || distinct !== false).map(parseCommit)
  const changes = findChanges(commits, linked)
  const gap = isDefaultBranch ? findGap(payload) : undefined
  if (changes.length === 0 && !isNewBranch) return gap ?? 'unlinked_files'
  const push: Push = {
    head: { branch: sanitizeBranch(branch), commitSha: sanitizeSha(payload.after) },
    commits: payload.commits.map(({ id }) => sanitizeSha(id)),
    isAllNew: payload.commits.every(({ distinct }) => distinct !== false),
    affected: changes.map(({ promptId, commits }) => ({ promptId, commits: commits.map(({ sha }) => sha) })),
  }
  // An author's clock may be wrong, and one that is ahead must not keep an entry on top of later ones.
  const pushedAt = earlierOf(parseTimestamp(payload.repository.pushed_at) ?? now, now)
  const bySha = new Map(commits.map((commit) => [commit.sha, commit]))
  const filesSeen = isDefaultBranch ? changes.map((change) => fileSeen(change, pushedAt)) : []
  return { push, bySha, isDefaultBranch, isNewBranch, pushedAt, filesSeen, gap }
}

/** Says what a push to the default branch leaves out; only a clone has it. */
function findGap(payload: PushPayload): Gap | undefined {
  if (payload.forced) return 'force_push'
  if (payload.commits.length >= maxListedCommits) return 'too_many_commits'
  const isListed = payload.commits.every(({ added, modified, removed }) => added ?? modified ?? removed)
  return isListed ? undefined : 'files_not_listed'
}

/** Drops the files of a merge commit: they came from the other side, whose commits list them too. */
function parseCommit(given: PushPayload['commits'][number]): Commit {
  const { added, modified, removed } = isMergeCommit(given.message ?? '') ? {} : given
  return {
    sha: sanitizeSha(given.id),
    title: sanitizeTitle(titleOf(given.message ?? '')),
    author: authorOf(given),
    added: added ?? [],
    modified: modified ?? [],
    removed: removed ?? [],
  }
}

/** The author of the commit, completed from the GitHub account. */
function authorOf({ author: { name, email, username } }: PushPayload['commits'][number]): Person {
  const account = { name: username ?? '', email: `${username || 'unknown'}@users.noreply.github.com` }
  return sanitizePerson({ name: name ?? '', email: email ?? '' }, account)
}

/** A linked prompt, and the commits that change its file, oldest first. */
type PromptChange = { promptId: number; path: string; commits: Commit[] }

function findChanges(commits: Commit[], linked: LinkedPrompt[]): PromptChange[] {
  const changes = new Map(
    linked.map(({ id, path }): [string, PromptChange] => [path, { promptId: id, path, commits: [] }]),
  )
  for (const commit of commits) {
    const paths = new Set([...commit.added, ...commit.modified, ...commit.removed])
    for (const path of paths) changes.get(path)?.commits.push(commit)
  }
  return [...changes.values()].filter((change) => change.commits.length > 0)
}

/** The state in which the last commit leaves the file. */
function fileSeen({ promptId, path, commits }: PromptChange, at: Date): FileSeen {
  const last = commits.at(-1) as Commit
  if (!last.removed.includes(path)) return { promptId, state: 'present', movedTo: null, at }
  const movedTo = findMovedTo(path, last)
  return { promptId, state: movedTo === null ? 'removed' : 'renamed', movedTo, at }
}

/** A push lists a rename as one file removed and one added: the only one added, or the only one of the same name. */
function findMovedTo(path: string, { added, removed }: Commit): string | null {
  if (added.length === 1 && removed.length === 1) return added[0] as string
  const namesakes = added.filter((other) => posix.basename(other) === posix.basename(path))
  return namesakes.length === 1 ? (namesakes[0] as string) : null
}

/** Stores the push and returns the entries that follow from it. */
export async function recordPush(sql: Sql, ref: RepositoryRef, parsed: ParsedPush): Promise<PromptEntry[]> {
  const { push, bySha, isDefaultBranch, isNewBranch, pushedAt } = parsed
  if (isNewBranch) await deletePushesTo(sql, ref, push.head.branch, pushedAt)
  const branchEntries = await recordAffectedPrompts(sql, ref, push, pushedAt)
  const commits = attributeCommits(push, await selectMerges(sql, ref, push)).map(({ promptId, commitSha, merge }) => {
    const { title, author } = bySha.get(commitSha) as Commit
    return { prompt: promptId, commitSha, title, author, at: pushedAt, merge: merge ? endOf(merge) : null }
  })
  const entries = entriesOf(push.head.branch, commits)
  return [...entries.filter(({ entry }) => isDefaultBranch || entry.action !== 'deployed'), ...branchEntries]
}

/** Stores which prompts a push to a branch affects. Returns the entries of the pull requests from that branch. */
export async function recordAffectedPrompts(sql: Sql, ref: RepositoryRef, push: Push, pushedAt: Date) {
  await insertAffectedPrompts(sql, ref, push, pushedAt)
  const promptIds = push.affected.map(({ promptId }) => promptId)
  const entries: PromptEntry[] = []
  for (const pr of await selectPullRequestsFrom(sql, ref, push.head)) {
    const added = await addPrompts(sql, ref, pr.number, promptIds)
    // A pull request that ended at this commit was delivered before the push, and still lacks both entries.
    entries.push(...openedEntries(added, pr, push.head.commitSha), ...endedEntries(added, pr))
  }
  return entries
}

/** One `pr_opened` for each prompt, at the head of the branch when the prompt was first affected. */
export function openedEntries(promptIds: number[], pr: PullRequest, commitSha: string): PromptEntry[] {
  const { number, url, title, opened_by: by, opened_at: at } = pr
  const entry = pullRequestEntry('pr_opened', pr.head_branch, { number, url, title, commitSha, by, at })
  return promptIds.map((prompt) => ({ prompt, entry, covers: [] }))
}

/** One `pr_merged` or `pr_closed` for each prompt; none while the pull request is open. */
export function endedEntries(promptIds: number[], pr: PullRequest): PromptEntry[] {
  if (pr.state === 'open') return []
  const isMerged = pr.state === 'merged'
  const entry = isMerged
    ? pullRequestEntry('pr_merged', pr.base_branch, endOf(pr))
    : pullRequestEntry('pr_closed', pr.head_branch, endOf(pr))
  // Each closing is a separate entry.
  return promptIds.map((prompt) => ({ prompt, entry, covers: [], reopenings: isMerged ? 0 : pr.reopenings }))
}

/** The merge of a pull request, or its closing at the head of its branch. */
const endOf = (pr: PullRequest): PullRequestEvent => ({
  number: pr.number,
  url: pr.url,
  title: pr.title,
  commitSha: pr.merge_commit_sha ?? pr.head_sha,
  by: pr.merged_by ?? pr.opened_by,
  at: pr.closed_at ?? pr.opened_at,
})

/** Decides which commits of a push belong to which merged pull request: GitHub does not say, nor how it was merged. */
export function attributeCommits(push: Push, merges: MergedPullRequest[]) {
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
