import type { Sql } from '../db/client.ts'
import { entriesOf } from '../git/entries.ts'
import type { Person } from '../git/facts.ts'
import { readMessage } from '../git/messages.ts'
import { fitBranch, fitSha } from '../git/people.ts'
import {
  attributeCommits,
  type Commit,
  endedEntries,
  entriesForPrompts,
  findFilesSeen,
  findTouches,
  mergeOf,
  openedEntry,
  type Push,
} from '../git/pushes.ts'
import type { PromptEntry } from '../history/record.ts'
import { earlierOf } from '../lib/times.ts'
import type { LinkedPrompt } from '../prompts/link.ts'
import type { FileSeen } from '../prompts/seen.ts'
import { authorOf } from './people.ts'
import type { Gap } from './receipt.ts'
import { readTime } from './repository.ts'
import type { PushPayload } from './schema.ts'
import type { RepositoryRef } from './store.ts'
import { addPrompts, deleteTouches, insertTouches, selectMerges, selectPullRequestsFrom } from './store_facts.ts'

/** The transaction of a delivery, in which no other delivery works on the repository. */
export type DeliveryContext = { sql: Sql; ref: RepositoryRef }

type PushChange = {
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
export function readPush(
  payload: PushPayload,
  linked: LinkedPrompt[],
  now: Date,
): PushChange | 'ignored' | 'unlinked_files' {
  const branch = branchOf(payload)
  if (branch === undefined) return 'ignored'
  const isDefaultBranch = branch === payload.repository.default_branch
  const isNewBranch = payload.created === true && !isDefaultBranch
  // Elsewhere a commit that was pushed before is one of the default branch that was merged or rebased upon.
  const commits = payload.commits.filter(({ distinct }) => isDefaultBranch || distinct !== false).map(readCommit)
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
  const pushedAt = earlierOf(readTime(payload.repository.pushed_at) ?? now, now)
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
function readCommit(given: PushPayload['commits'][number]): Commit {
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
  const meaning = readMessage(message)
  return meaning.kind === 'branch' || (meaning.kind === 'pull_request' && meaning.host !== null)
}

/** Stores the push, and returns the entries that follow from it. */
export async function recordPush(context: DeliveryContext, change: PushChange): Promise<PromptEntry[]> {
  const { sql, ref } = context
  const { push, authors, pushedAt } = change
  if (change.isNewBranch) await deleteTouches(sql, ref, push.head.branch, pushedAt)
  const branchEntries = await recordTouches(context, push, pushedAt)
  const changes = attributeCommits(push, await selectMerges(sql, ref, push)).map(({ promptId, commitSha, merge }) => ({
    prompt: promptId,
    commitSha,
    author: authors.get(commitSha) as Person,
    at: pushedAt,
    merge: (merge && mergeOf(merge)) ?? null,
  }))
  const entries = entriesOf(push.head.branch, changes)
    .filter(({ entry }) => change.isDefaultBranch || entry.action !== 'deployed')
    .map(({ prompt, entry, covers }) => ({ promptId: prompt, entry, covers }))
  return [...entries, ...branchEntries]
}

/** Stores which prompts a push to a branch touches, and returns the entries of the pull requests from that branch. */
export async function recordTouches({ sql, ref }: DeliveryContext, push: Push, pushedAt: Date): Promise<PromptEntry[]> {
  await insertTouches(sql, ref, push, pushedAt)
  const promptIds = push.touches.map(({ promptId }) => promptId)
  const entries: PromptEntry[] = []
  for (const pr of await selectPullRequestsFrom(sql, ref, push.head)) {
    const added = await addPrompts(sql, ref, pr.number, promptIds)
    // The end of one that ended at this commit arrived before the push did, and still lacks both entries.
    entries.push(...entriesForPrompts(added, openedEntry(pr, push.head.commitSha)), ...endedEntries(added, pr))
  }
  return entries
}
