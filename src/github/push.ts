import type { Sql } from '../db/client.ts'
import { fitBranch, fitSha } from '../git/people.ts'
import type { PromptEntry } from '../history/record.ts'
import { keepable, parseInstant } from '../lib/times.ts'
import type { LinkedPrompt } from '../prompts/link.ts'
import { attributeCommitsToMerges, deployed, ended, entriesForPrompts, findTouches, opened } from './entries.ts'
import type { Commit, Push, RepositoryRef } from './facts.ts'
import { authorOf } from './people.ts'
import type { PushPayload } from './schema.ts'
import { addPrompts, deleteTouches, insertTouches, selectMerges, selectPullRequestsFrom } from './store_facts.ts'

/** The transaction of a delivery, in which no other delivery works on the repository. */
export type DeliveryContext = { sql: Sql; ref: RepositoryRef }

export type PushChange = {
  type: 'push'
  push: Push
  /** The commits that count for this branch. */
  commits: Commit[]
  isDefaultBranch: boolean
  isNewBranch: boolean
  pushedAt: Date
  committedAt: Date
}

const branches = 'refs/heads/'

/** What a push changes; undefined when it concerns none of the linked prompts. */
export function readPush(payload: PushPayload, linked: LinkedPrompt[], now: Date): PushChange | undefined {
  if (payload.deleted || !payload.ref.startsWith(branches)) return undefined
  const branch = payload.ref.slice(branches.length)
  const isDefaultBranch = branch === payload.repository.default_branch
  const isNewBranch = payload.created === true && !isDefaultBranch
  // Elsewhere a commit that was pushed before is one of the default branch that was merged or rebased upon.
  const counted = payload.commits.filter(({ distinct }) => isDefaultBranch || distinct !== false)
  const commits = counted.map((commit) => ({
    sha: fitSha(commit.id),
    author: authorOf(commit),
    files: [...commit.added, ...commit.modified, ...commit.removed],
  }))
  const touches = findTouches(commits, linked)
  if (touches.length === 0 && !isNewBranch) return undefined
  const push = {
    head: { branch: fitBranch(branch), commitSha: fitSha(payload.after) },
    commits: payload.commits.map(({ id }) => fitSha(id)),
    isAllNew: payload.commits.every(({ distinct }) => distinct !== false),
    touches,
  }
  const committedAt = parseInstant(payload.head_commit?.timestamp ?? '') ?? now
  const pushedAt = readPushedAt(payload) ?? now
  return { type: 'push', push, commits, isDefaultBranch, isNewBranch, pushedAt, committedAt }
}

/** GitHub's own time, so that pushes have their order even when they arrive in another. */
function readPushedAt({ repository: { pushed_at: at } }: PushPayload): Date | undefined {
  return typeof at === 'number' ? keepable(new Date(at * 1_000)) : parseInstant(at ?? '')
}

/** Stores the push, and returns the entries that follow from it. */
export async function recordPush(context: DeliveryContext, change: PushChange): Promise<PromptEntry[]> {
  const { sql, ref } = context
  const { push, commits, pushedAt } = change
  if (change.isNewBranch) await deleteTouches(sql, ref, push.head.branch, pushedAt)
  const branchEntries = await recordTouches(context, push, pushedAt)
  const { merged, direct } = attributeCommitsToMerges(push, await selectMerges(sql, ref, push))
  const deploys = change.isDefaultBranch ? deployed(direct, push.head, commits, change.committedAt) : []
  return [...merged, ...deploys, ...branchEntries]
}

/** Stores which prompts a push to a branch touches, and returns the entries of the pull requests from that branch. */
export async function recordTouches({ sql, ref }: DeliveryContext, push: Push, pushedAt: Date): Promise<PromptEntry[]> {
  await insertTouches(sql, ref, push, pushedAt)
  const promptIds = push.touches.map(({ promptId }) => promptId)
  const entries: PromptEntry[] = []
  for (const pr of await selectPullRequestsFrom(sql, ref, push.head)) {
    const added = await addPrompts(sql, ref, pr.number, promptIds)
    // The end of one that ended at this commit arrived before the push did, and still lacks both entries.
    entries.push(...entriesForPrompts(added, opened(pr, push.head.commitSha)), ...entriesForPrompts(added, ended(pr)))
  }
  return entries
}
