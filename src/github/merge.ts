import type { PromptEntry } from '../history/record.ts'
import { ended } from './entries.ts'
import {
  type Head,
  type PullRequest,
  type Push,
  selectConcerned,
  selectPrompts,
  selectPushes,
  selectTouched,
  type Touch,
} from './store.ts'
import { type Scene, tell } from './touch.ts'

/** What is to be told of the merges that a push brings, and the touches that are of no pull request. */
export async function tellMerges(scene: Scene, push: Push): Promise<{ told: PromptEntry[]; direct: Touch[] }> {
  const told: PromptEntry[] = []
  let direct = push.touches
  for (const pr of await selectConcerned(scene.sql, scene.place, push)) {
    if (pr.baseBranch !== push.head.branch) continue
    const isOwn = await judge(scene, push, pr)
    told.push(...tell(idsOf(keep(push.touches, isOwn)), ended(pr)))
    direct = keep(direct, (commit, promptId) => !isOwn(commit, promptId))
  }
  return { told, direct }
}

/**
 * The prompts that the push of a merge, if it came before, shows to be changed by it. Each with the head as which they
 * were told to be deployed; null when they were rightly, by a commit of no pull request.
 */
export async function findMerged(scene: Scene, head: Head, pr: PullRequest): Promise<Map<number, string | null>> {
  const merged = new Map<number, string | null>()
  for (const push of await selectPushes(scene.sql, scene.place, head)) {
    const direct = idsOf((await tellMerges(scene, push)).direct)
    for (const promptId of idsOf(keep(push.touches, await judge(scene, push, pr)))) {
      merged.set(promptId, direct.includes(promptId) ? null : push.head.commitSha)
    }
  }
  return merged
}

type Judge = (commit: string, promptId: number) => boolean

/**
 * Which commits of a push belong to a pull request whose merge is one of them. GitHub does not say it, nor how it was
 * merged, and lists the commits of several branches by their time.
 */
async function judge({ sql, place }: Scene, { head, commits, isAllNew }: Push, pr: PullRequest): Promise<Judge> {
  const isMergeCommit = commits.includes(pr.headSha)
  // A merge queue has pushed its commits before, to a branch of its own; whoever rebases by the button has not.
  const isNothingElse = pr.mergeCommitSha === head.commitSha && commits.length <= pr.commits + 1
  if (isNothingElse && (isMergeCommit || isAllNew)) return () => true

  const onBranch = new Set((await selectTouched(sql, place, pr)).flatMap((touch) => touch.commits))
  const known = new Set(await selectPrompts(sql, place, pr.number))
  // Squashed or rebased, its commits are others than those of its branch, but touch the same prompts.
  const isRewritten: Judge = (_, promptId) => !isMergeCommit && known.has(promptId)
  return (commit, promptId) => commit === pr.mergeCommitSha || onBranch.has(commit) || isRewritten(commit, promptId)
}

const keep = (touches: Touch[], judge: Judge): Touch[] =>
  touches
    .map(({ promptId, commits }) => ({ promptId, commits: commits.filter((commit) => judge(commit, promptId)) }))
    .filter(({ commits }) => commits.length > 0)

const idsOf = (touches: Touch[]): number[] => touches.map(({ promptId }) => promptId)
