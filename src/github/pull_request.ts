import type { Clock } from '../clock.ts'
import type { PromptEntry } from '../history/record.ts'
import { parseInstant } from '../lib/times.ts'
import { repositoryKey } from '../prompts/link.ts'
import { ended, opened } from './entries.ts'
import { findMerged } from './merge.ts'
import { accountPerson, fitBranch, fitSha, fitUrl } from './people.ts'
import type { PullRequestPayload } from './schema.ts'
import { addPrompts, type PullRequest, savePullRequest, selectPrompts, selectTouched } from './store.ts'
import { type Scene, tell, touchBranch } from './touch.ts'

const heeded = ['opened', 'reopened', 'closed']

/** What an event of a pull request asks for; undefined for nothing. */
export function planPullRequest(payload: PullRequestPayload): ((scene: Scene) => Promise<PromptEntry[]>) | undefined {
  const { action, repository } = payload
  if (!heeded.includes(action)) return undefined

  return async (scene) => {
    const { sql, clock, place } = scene
    const pr = readPullRequest(payload, clock)
    await savePullRequest(sql, place, pr, action === 'opened')
    const fresh = await addPrompts(
      sql,
      place,
      pr.number,
      (await selectTouched(sql, place, pr)).map(({ promptId }) => promptId),
    )
    if (action === 'reopened') return tell(fresh, opened(pr, pr.headSha))
    const promptIds = await selectPrompts(sql, place, pr.number)
    if (action === 'opened') return tell(promptIds, opened(pr, pr.headSha))
    if (pr.mergeCommitSha === null) return tell(promptIds, ended(pr))
    const head = { branch: pr.baseBranch, commitSha: pr.mergeCommitSha }
    // Also those that only the push of the merge has shown, as from a fork.
    const shown = await findMerged(scene, head, pr)
    const merged = [...new Set([...promptIds, ...shown.keys()])]
    const told = tell(merged, ended(pr)).map((one) => ({ ...one, deployedAs: shown.get(one.promptId) }))
    if (pr.baseBranch === repository.default_branch) return told
    // What was merged is now on the other branch, which may have a pull request of its own.
    const commits = [head.commitSha]
    const touches = merged.map((promptId) => ({ promptId, commits }))
    const further = await touchBranch(scene, { head, commits, isAllNew: false, touches }, pr.closedAt ?? clock.now())
    return [...told, ...further]
  }
}

function readPullRequest({ action, pull_request: given }: PullRequestPayload, clock: Clock): PullRequest {
  const isMerged = action === 'closed' && given.merged === true
  const opener = accountPerson(given.user)
  const merger = isMerged ? accountPerson(given.merged_by ?? given.user) : undefined
  const instant = (text: string | null | undefined) => parseInstant(text ?? '') ?? clock.now()
  return {
    number: given.number,
    url: fitUrl(given.html_url),
    state: action !== 'closed' ? 'open' : isMerged ? 'merged' : 'closed',
    headRepository: given.head.repo ? repositoryKey(given.head.repo.full_name) : null,
    headBranch: fitBranch(given.head.ref),
    headSha: fitSha(given.head.sha),
    baseBranch: fitBranch(given.base.ref),
    // Of an open one it is a trial merge that no branch ever has.
    mergeCommitSha: isMerged ? fitSha(given.merge_commit_sha ?? given.head.sha) : null,
    commits: given.commits ?? 0,
    openedByName: opener.name,
    openedByEmail: opener.email,
    openedAt: instant(given.created_at),
    mergedByName: merger?.name ?? null,
    mergedByEmail: merger?.email ?? null,
    closedAt: action === 'closed' ? instant(isMerged ? given.merged_at : given.closed_at) : null,
  }
}
