import { posix } from 'node:path'
import {
  type Person,
  parseMessage,
  sanitizeBranch,
  sanitizePerson,
  sanitizeSha,
  sanitizeTitle,
  titleOf,
} from '../git/entries.ts'
import { earlierOf } from '../lib/times.ts'
import type { FileSeen, LinkedPrompt } from '../prompts/link.ts'
import { type Gap, type PushPayload, parseTimestamp } from './schema.ts'
import type { Push } from './store.ts'

/** A commit with the files that it changes; a merge of another branch has none. */
export type Commit = {
  sha: string
  title: string | null
  author: Person
  added: string[]
  modified: string[]
  removed: string[]
}

export type ParsedPush = Exclude<ReturnType<typeof parsePush>, string>

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
  // A new branch drops the pushes of an older one of its name, also if it changes no prompt.
  if (changes.length === 0 && !isNewBranch) return gap ?? 'unlinked_files'
  const push: Push = {
    head: { branch: sanitizeBranch(branch), commitSha: sanitizeSha(payload.after) },
    shas: payload.commits.map(({ id }) => sanitizeSha(id)),
    isAllNew: payload.commits.every(({ distinct }) => distinct !== false),
    affected: changes.map(({ promptId, commits }) => ({ promptId, shas: commits.map(({ sha }) => sha) })),
  }
  // The time of the push, not of the author, whose clock may be wrong.
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

/** GitHub's payloads have no parents. A merge title that is not typical of one host may also be the title of a squash. */
function looksLikeMerge(message: string): boolean {
  const meaning = parseMessage(message)
  return meaning.kind === 'branch' || (meaning.kind === 'pull_request' && meaning.host !== null)
}

/** Drops the files of a merge commit: they came from the other side, whose commits list them too. */
function parseCommit(given: PushPayload['commits'][number]): Commit {
  const { added, modified, removed } = looksLikeMerge(given.message ?? '') ? {} : given
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

/** Finds the new path of a renamed file: the only file that the commit adds, or the only one with the same name. */
function findMovedTo(path: string, { added, removed }: Commit): string | null {
  if (added.length === 1 && removed.length === 1) return added[0] as string
  const namesakes = added.filter((other) => posix.basename(other) === posix.basename(path))
  return namesakes.length === 1 ? (namesakes[0] as string) : null
}
