import { fitBranch, fitSha, fitUrl } from '../git/people.ts'
import { attributeCommits, endedEntries, entriesForPrompts, openedEntry, type PullRequest } from '../git/pushes.ts'
import type { PromptEntry } from '../history/record.ts'
import { parseInstant } from '../lib/times.ts'
import { accountPerson } from './people.ts'
import { type DeliveryContext, recordTouches } from './push.ts'
import type { PullRequestPayload } from './schema.ts'
import { addBranchPrompts, savePullRequest, selectMerges, selectPrompts, selectPushes } from './store_facts.ts'

type PullRequestChange = {
  action: string
  pr: Omit<PullRequest, 'reopenings'>
  isDefaultBase: boolean
}

const handledActions = ['opened', 'reopened', 'closed']

/** What an event of a pull request changes. */
export function readPullRequest(payload: PullRequestPayload, now: Date): PullRequestChange | 'ignored' {
  const { action, pull_request: given, repository } = payload
  if (!handledActions.includes(action)) return 'ignored'
  const isMerged = action === 'closed' && given.merged === true
  const instant = (text: string | null | undefined) => parseInstant(text ?? '') ?? now
  const pr: PullRequestChange['pr'] = {
    number: given.number,
    url: fitUrl(given.html_url),
    state: action !== 'closed' ? 'open' : isMerged ? 'merged' : 'closed',
    headRepositoryId: given.head.repo?.id ?? null,
    headBranch: fitBranch(given.head.ref),
    headSha: fitSha(given.head.sha),
    baseBranch: fitBranch(given.base.ref),
    // For an open pull request GitHub sends a trial merge, which is on no branch.
    mergeCommitSha: isMerged ? fitSha(given.merge_commit_sha ?? given.head.sha) : null,
    commits: given.commits ?? 0,
    openedBy: accountPerson(given.user),
    openedAt: instant(given.created_at),
    mergedBy: isMerged ? accountPerson(given.merged_by ?? given.user) : null,
    closedAt: action === 'closed' ? instant(isMerged ? given.merged_at : given.closed_at) : null,
  }
  return { action, pr, isDefaultBase: pr.baseBranch === repository.default_branch }
}

/** Stores the pull request, and returns the entries that follow from its event. */
export async function recordPullRequest(context: DeliveryContext, change: PullRequestChange): Promise<PromptEntry[]> {
  const { sql, ref } = context
  const { action } = change
  const pr = await savePullRequest(sql, ref, change.pr, action)
  const added = await addBranchPrompts(sql, ref, pr.number)
  if (action === 'reopened') return entriesForPrompts(added, openedEntry(pr, pr.headSha))
  const promptIds = await selectPrompts(sql, ref, pr.number)
  if (action === 'opened') return entriesForPrompts(promptIds, openedEntry(pr, pr.headSha))
  if (pr.mergeCommitSha === null) return endedEntries(promptIds, pr)

  const head = { branch: pr.baseBranch, commitSha: pr.mergeCommitSha }
  const covers = new Map<number, string[]>(promptIds.map((promptId) => [promptId, []]))
  // The push of the merge may have arrived first. For a fork, it alone shows which prompts the branch changes.
  for (const push of await selectPushes(sql, ref, head)) {
    for (const { promptId, commitSha, merge } of attributeCommits(push, await selectMerges(sql, ref, push))) {
      if (merge?.number === pr.number) covers.set(promptId, [...(covers.get(promptId) ?? []), commitSha])
    }
  }
  const entries = endedEntries([...covers.keys()], pr).map((entry) => ({
    ...entry,
    covers: covers.get(entry.promptId),
  }))
  if (change.isDefaultBase) return entries
  // What was merged is now on the other branch, which may have a pull request of its own.
  const commits = [head.commitSha]
  const touches = [...covers.keys()].map((promptId) => ({ promptId, commits }))
  const push = { head, commits, isAllNew: false, touches }
  return [...entries, ...(await recordTouches(context, push, pr.closedAt ?? pr.openedAt))]
}
