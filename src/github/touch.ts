import type { Clock } from '../clock.ts'
import type { Sql } from '../db/client.ts'
import type { PromptEntry } from '../history/record.ts'
import type { LinkedPrompt } from '../prompts/link.ts'
import { ended, opened } from './entries.ts'
import { addPrompts, insertTouches, type Place, type Push, selectConcerned } from './store.ts'

/** Where an event is carried out: a transaction in which nobody else works on the repository. */
export type Scene = { sql: Sql; clock: Clock; place: Place; linked: LinkedPrompt[] }

/** Everything that one entry says, for each of these prompts. */
export const tell = (promptIds: number[], entry: PromptEntry['entry'] | undefined): PromptEntry[] =>
  entry ? promptIds.map((promptId) => ({ promptId, entry })) : []

/** Remembers that a push to a branch touches prompts, and tells it of the pull requests from that branch. */
export async function touchBranch({ sql, place }: Scene, push: Push, pushedAt: Date): Promise<PromptEntry[]> {
  const { head, touches } = push
  await insertTouches(sql, place, push, pushedAt)
  const promptIds = touches.map(({ promptId }) => promptId)
  const told: PromptEntry[] = []
  for (const pr of await selectConcerned(sql, place, push)) {
    if (pr.baseBranch === head.branch) continue
    // One that has ended at this commit was faster than the push, and all of its story is still to be told.
    const fresh = await addPrompts(sql, place, pr.number, promptIds)
    told.push(...tell(fresh, opened(pr, head.commitSha)), ...tell(fresh, ended(pr)))
  }
  return told
}
