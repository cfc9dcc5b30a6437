import type { Clock } from '../clock.ts'
import type { Sql } from '../db/client.ts'
import type { Told } from '../history/record.ts'
import type { LinkedPrompt } from '../prompts/link.ts'
import { ended, opened } from './entries.ts'
import { addPrompts, type Head, insertTouches, type Place, type PullRequest, selectConcerned } from './store.ts'

/** Where an event is carried out: a transaction in which nobody else works on the repository. */
export type Scene = { sql: Sql; clock: Clock; place: Place; linked: LinkedPrompt[] }

/** Everything that one entry says, for each of these prompts. */
export const tell = (promptIds: number[], entry: Told['entry'] | undefined): Told[] =>
  entry ? promptIds.map((promptId) => ({ promptId, entry })) : []

/**
 * Remembers that a branch has a new head which touches prompts, and tells it of the pull requests from that branch.
 * Answers also with the pull request whose merge made the commit, when that is known by now.
 */
export async function touchBranch(
  { sql, place }: Scene,
  head: Head,
  promptIds: number[],
  pushedAt: Date,
): Promise<{ told: Told[]; merge: PullRequest | undefined }> {
  await insertTouches(sql, place, head, promptIds, pushedAt)
  const told: Told[] = []
  let merge: PullRequest | undefined
  for (const pr of await selectConcerned(sql, place, head)) {
    if (pr.state === 'merged' && pr.mergeCommitSha === head.commitSha && pr.baseBranch === head.branch) {
      merge = pr
      continue
    }
    // One that has ended at this commit was faster than the push, and all of its story is still to be told.
    const fresh = await addPrompts(sql, place, pr.number, promptIds)
    told.push(...tell(fresh, opened(pr, head.commitSha)), ...tell(fresh, ended(pr)))
  }
  return { told, merge }
}
