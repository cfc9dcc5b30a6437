import type { Db } from '../db/client.ts'
import { type PromptIds, selectPrompts } from './store_reads.ts'

/** As many as one statement may count: some tens of milliseconds of the embedded engine. */
const promptsAtOnce = 250

/** The prompts of an organisation after one of them, some at a time: there is no limit to how many it may have. */
export async function* promptsOf(db: Db, organisationId: number, afterId = 0): AsyncGenerator<PromptIds[]> {
  for (let lastId = afterId; ; ) {
    const prompts = await selectPrompts(db.sql, organisationId, lastId, promptsAtOnce)
    if (prompts.length > 0) yield prompts
    if (prompts.length < promptsAtOnce) return
    lastId = (prompts.at(-1) as PromptIds).id
  }
}
