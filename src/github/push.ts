import { posix } from 'node:path'
import type { Sql } from '../db/client.ts'
import { entriesOf, type Person } from '../git/entries.ts'
import { fitBranch, fitPerson, fitSha } from '../git/fit.ts'
import { parseMessage } from '../git/messages.ts'
import type { PromptEntry } from '../history/record.ts'
import { earlierOf } from '../lib/times.ts'
import type { LinkedPrompt } from '../prompts/link.ts'
import type { FileSeen } from '../prompts/seen.ts'
import { attributeCommits } from './attribute.ts'
import { endOf, recordTouches } from './pull_request.ts'
import type { Gap } from './receipt.ts'
import { parseTimestamp } from './repository.ts'
import type { PushPayload } from './schema.ts'
import type { RepositoryRef } from './store.ts'
import { deleteTouches, type Push, selectMerges, type Touch } from './store_facts.ts'

/** A commit, with the files that it itself changes: none for one that merely merges another branch in. */
type Commit = { sha: string; author: Person; added: string[]; modified: string[]; removed: string[] }

type ParsedPush = {
  push: Push
  authors: Map<string, Person>
  isDefaultBranch: boolean
  isNewBranch: boolean
  pushedAt: Date
  filesSeen: FileSeen[]
}

const branches = 'refs/heads/'
/** The most commits that GitHub lists in a push. */
const maxListedCommits = 2_048

/** What a push changes, or why it changes nothing. */
export function parsePush(
  payload: PushPayload,
  linked: LinkedPrompt[],
  now: Date,
): ParsedPush | 'ignored' | 'unlinked_files' {
  const branch = branchOf(payload)
  if (branch === undefined) return 'ignored'
  const isDefaultBranch = branch === payload.repository.default_branch
  const isNewBranch = payload.created === true && !isDefaultBranch
  // Elsewhere a commit that was pushed before is one of the default branch that was merged or rebased upon.
  const commits = payload.commits.filter(({ distinct }) => isDefaultBranch || distinct !== false).map(parseCommit)
  const touches = findTouches(commits, linked)
  if (touches.length === 0 && !isNewBranch) return 'unlinked_files'
  const push = {
    head: { branch: fitBranch(branch), commitSha: fitSha(payload.after) },
    commits: payload.commits.map(({ id }) => fitSha(id)),
    isAllNew: payload.commits.every(({ distinct }) => distinct !== false),
    touches,
  }
  // GitHub's own time: that of a commit is when it was made, by a clock that may be wrong. A clock that is ahead must not
  // keep an entry on top of those to come.
  const pushedAt = earlierOf(parseTimestamp(payload.repository.pushed_at) ?? now, now)
  const authors = new Map(commits.map(({ sha, author }) => [sha, author]))
  const filesSeen = isDefaultBranch ? findFilesSeen(commits, linked, pushedAt) : []
  return { push, authors, isDefaultBranch, isNewBranch, pushedAt, filesSeen }
}

/** What a push to the default branch leaves out, so that only a clone has it. */
export function findGap(payload: PushPayload): Gap | undefined {
  if (branchOf(payload) !== payload.repository.default_branch) return undefined
  if (payload.forced) return 'force_push'
  if (payload.commits.length >= maxListedCommits) return 'too_many_commits'
  const isListed = payload.commits.every(({ added, modified, removed }) => added ?? modified ?? removed)
  return isListed ? undefined : 'files_not_listed'
}

const branchOf = ({ deleted, ref }: PushPayload): string | undefined =>
  deleted || !ref.startsWith(branches) ? undefined : ref.slice(branches.length)

/** A merge commit lists what came from the other side, which the commits of that side list as well. */
function parseCommit(given: PushPayload['commits'][number]): Commit {
  const { added, modified, removed } = isMergeCommit(given.message ?? '') ? {} : given
  return {
    sha: fitSha(given.id),
    author: authorOf(given),
    added: added ?? [],
    modified: modified ?? [],
    removed: removed ?? [],
  }
}

/** A title that no host has written for a merge alone may also be that of a squash. */
function isMergeCommit(message: string): boolean {
  const meaning = parseMessage(message)
  return meaning.kind === 'branch' || (meaning.kind === 'pull_request' && meaning.host !== null)
}

/** The author as the commit says, or else the account of GitHub's. */
function authorOf({ author: { name, email, username } }: PushPayload['commits'][number]): Person {
  const account = { name: username ?? '', email: `${username || 'unknown'}@users.noreply.github.com` }
  return fitPerson({ name: name ?? '', email: email ?? '' }, account)
}

/** The prompts whose files the commits touch, each with the commits that do. */
function findTouches(commits: Commit[], linked: LinkedPrompt[]): Touch[] {
  const touches = new Map(linked.map(({ id, path }) => [path, { promptId: id, commits: [] as string[] }]))
  for (const { sha, added, modified, removed } of commits) {
    for (const path of new Set([...added, ...modified, ...removed])) touches.get(path)?.commits.push(sha)
  }
  return [...touches.values()].filter((touch) => touch.commits.length > 0)
}

/** How the commits leave the files of the prompts that they touch. */
function findFilesSeen(commits: Commit[], linked: LinkedPrompt[], at: Date): FileSeen[] {
  const last = new Map<string, Commit>()
  for (const commit of commits) {
    for (const path of [...commit.added, ...commit.modified, ...commit.removed]) last.set(path, commit)
  }
  return linked.flatMap(({ id: promptId, path }): FileSeen[] => {
    const commit = last.get(path)
    if (!commit) return []
    if (!commit.removed.includes(path)) return [{ promptId, state: 'present', movedTo: null, at }]
    const movedTo = findMovedTo(path, commit)
    return [{ promptId, state: movedTo === null ? 'removed' : 'renamed', movedTo, at }]
  })
}

/** A push says of a renamed file that it was removed, and of another that it was added: the only one, or of the same name. */
function findMovedTo(path: string, { added, removed }: Commit): string | null {
  if (added.length === 1 && removed.length === 1) return added[0] as string
  const namesakes = added.filter((other) => posix.basename(other) === posix.basename(path))
  return namesakes.length === 1 ? (namesakes[0] as string) : null
}

/** Stores the push, and returns the entries that follow from it. */
export async function recordPush(
  sql: Sql,
  ref: RepositoryRef,
  { push, authors, isDefaultBranch, isNewBranch, pushedAt }: ParsedPush,
): Promise<PromptEntry[]> {
  if (isNewBranch) await deleteTouches(sql, ref, push.head.branch, pushedAt)
  const branchEntries = await recordTouches(sql, ref, push, pushedAt)
  const commits = attributeCommits(push, await selectMerges(sql, ref, push)).map(({ promptId, commitSha, merge }) => ({
    prompt: promptId,
    commitSha,
    author: authors.get(commitSha) as Person,
    at: pushedAt,
    merge: merge ? endOf(merge) : null,
  }))
  const entries = entriesOf(push.head.branch, commits)
  return [...entries.filter(({ entry }) => isDefaultBranch || entry.action !== 'deployed'), ...branchEntries]
}
