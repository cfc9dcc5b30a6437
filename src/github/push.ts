import { posix } from 'node:path'
import type { Sql } from '../db/client.ts'
import { entriesOf, type Person, sanitizeBranch, sanitizePerson, sanitizeSha, sanitizeTitle } from '../git/entries.ts'
import { parseMessage, plain, titleOf } from '../git/messages.ts'
import type { PromptEntry } from '../history/record.ts'
import { earlierOf } from '../lib/times.ts'
import type { FileSeen, LinkedPrompt } from '../prompts/link.ts'
import { attributeCommits, endOf, recordAffectedPrompts } from './pull_request.ts'
import { type Gap, type PushPayload, parseTimestamp } from './schema.ts'
import { deletePushesTo, type Push, type RepositoryRef, selectMerges } from './store.ts'

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
    title: sanitizeTitle(titleOf(given.message ?? '', plain)),
    author: authorOf(given),
    added: added ?? [],
    modified: modified ?? [],
    removed: removed ?? [],
  }
}

/** A merge title that is not typical of one host may also be the title of a squash. */
function isMergeCommit(message: string): boolean {
  const meaning = parseMessage(message)
  return meaning.kind === 'branch' || (meaning.kind === 'pull_request' && meaning.host !== null)
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
