import type { Sql } from '../db/client.ts'
import { type Person, sanitizeBranch, sanitizePerson, sanitizeSha, sanitizeTitle, sanitizeUrl } from '../git/entries.ts'
import type { PromptEntry } from '../history/record.ts'
import { earlierOf, parseInstant } from '../lib/times.ts'
import {
  attributeCommits,
  closedEntries,
  mergedEntries,
  openedEntries,
  readBranchPushes,
  readMerges,
  recordBranchPush,
} from './push.ts'
import { type Account, type PullRequestPayload, repositoryIdOf } from './schema.ts'
import {
  addPrompts,
  type PullRequest,
  type RepositoryRef,
  savePullRequest,
  selectPullRequestPrompts,
  selectPushes,
} from './store.ts'

/** The event of a pull request lists no files. */
const noFiles = { filesSeen: [], gap: undefined }

type ParsedPullRequest = typeof noFiles & { action: string; pr: PullRequest; isDefaultBase: boolean }

export function parsePullRequest(payload: PullRequestPayload, now: Date): ParsedPullRequest | 'ignored' {
  const { action, pull_request: given, repository } = payload
  if (!['opened', 'reopened', 'closed'].includes(action)) return 'ignored'
  const isMerged = action === 'closed' && given.merged === true
  // GitHub's clock may be ahead.
  const instant = (text: string | null | undefined) => earlierOf(parseInstant(text ?? '') ?? now, now)
  const pr: PullRequest = {
    number: given.number,
    url: sanitizeUrl(given.html_url),
    title: sanitizeTitle(given.title ?? ''),
    state: action !== 'closed' ? 'open' : isMerged ? 'merged' : 'closed',
    head_repository_id: given.head.repo ? repositoryIdOf(given.head.repo) : null,
    head_branch: sanitizeBranch(given.head.ref),
    head_sha: sanitizeSha(given.head.sha),
    base_branch: sanitizeBranch(given.base.ref),
    // For an open pull request GitHub sends a test merge, which is on no branch.
    merge_commit_sha: isMerged ? sanitizeSha(given.merge_commit_sha ?? given.head.sha) : null,
    commit_count: given.commits ?? 0,
    opened_by: accountPerson(given.user),
    opened_at: instant(given.created_at),
    merged_by: isMerged ? accountPerson(given.merged_by ?? given.user) : null,
    closed_at: action === 'closed' ? instant(isMerged ? given.merged_at : given.closed_at) : null,
    changed_at: instant(given.updated_at),
    opened_sha: action === 'opened' ? sanitizeSha(given.head.sha) : null,
    closings: [],
  }
  if (pr.state === 'closed' && pr.closed_at) pr.closings = [{ at: pr.closed_at.toISOString(), sha: pr.head_sha }]
  return { action, pr, isDefaultBase: pr.base_branch === repository.default_branch, ...noFiles }
}

/** The address is GitHub's no-reply one. A deleted account becomes ghost, as on GitHub. */
function accountPerson(account: Account | null | undefined): Person {
  const { login, id } = account ?? { login: 'ghost', id: 10_137 }
  return sanitizePerson({ name: login, email: `${id}+${login}@users.noreply.github.com` })
}

/** Stores the pull request and returns the entries that follow from its event. */
export async function recordPullRequest(sql: Sql, repo: RepositoryRef, parsed: ParsedPullRequest) {
  const { action, pr: given, isDefaultBase } = parsed
  const pr = await savePullRequest(sql, repo, given, action)
  const pushed = (await readBranchPushes(sql, repo, pr)).map(({ promptId }) => promptId)
  const added = await addPrompts(sql, repo, pr.number, pushed)
  const openings = openedEntries(added, pr)
  if (action === 'reopened') return openings
  const known = await selectPullRequestPrompts(sql, repo, pr.number, pr.head_branch)
  // Prompts that were only pushed before the pull request or after its end, which may arrive in any order, are not its own.
  const promptIds = known.flatMap(({ promptId, isPushed }) => (isPushed && !pushed.includes(promptId) ? [] : promptId))
  if (action === 'opened') return openedEntries(promptIds, pr)
  if (pr.merge_commit_sha === null) return [...openings, ...closedEntries(promptIds, pr, given.closings)]

  const head = { branch: pr.base_branch, commitSha: pr.merge_commit_sha }
  const covers = new Map<number, string[]>(promptIds.map((promptId) => [promptId, []]))
  // The push of the merge may have arrived first. For a fork, only that push shows which prompts the branch changes.
  for (const push of await selectPushes(sql, repo, head)) {
    for (const { promptId, commitSha, merge } of attributeCommits(push, await readMerges(sql, repo, push))) {
      if (merge?.number === pr.number) covers.set(promptId, [...(covers.get(promptId) ?? []), commitSha])
    }
  }
  const merges = mergedEntries([...covers.keys()], pr)
  const merged = merges.map((entry): PromptEntry => ({ ...entry, covers: covers.get(entry.prompt) ?? [] }))
  const entries = [...openings, ...merged]
  if (isDefaultBase) return entries
  // The merged prompts are now on the other branch, which may have a pull request too.
  const shas = [head.commitSha]
  const affected = [...covers.keys()].map((promptId) => ({ promptId, shas }))
  const push = { head, shas, isAllNew: false, affected }
  return [...entries, ...(await recordBranchPush(sql, repo, push, pr.closed_at ?? pr.opened_at))]
}
