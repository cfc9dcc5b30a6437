import { type Actor, permitRequestOf, recordAudit } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { ServiceError } from '../errors.ts'
import { repeatStep } from '../lib/periodic.ts'
import type { Prompt } from '../prompts/find.ts'
import { showEntry } from './schema.ts'
import { selectEntry, selectNewestEntries } from './store_known.ts'
import { insertRemoved, lockHistories, writeReconciliation } from './store_write.ts'
import { eraseTexts } from './texts.ts'

export { deleteHistory } from './store_write.ts'

/** The size of a step: the embedded engine does nothing else meanwhile. */
const stepRows = 500

/** Erases the texts and the entries of a prompt in short steps. The rest of the history stays readable meanwhile. */
export async function eraseHistory(db: Db, prompt: Prompt): Promise<void> {
  const { id, organisationId, publicId } = prompt
  await eraseTexts(db, organisationId, id)
  await repeatStep(stepRows, () =>
    db.transaction(async (sql) => {
      await lockHistories(sql, organisationId, [id], [publicId])
      const deletes = await selectNewestEntries(sql, prompt, stepRows)
      await writeReconciliation(sql, organisationId, { inserts: [], updates: [], deletes, mergedCommits: [] })
      return deletes.length
    }),
  )
}

/** Removes a wrong entry. If sync or the webhook had reported it, they do not bring it back. */
export async function removeEntry(db: Db, clock: Clock, prompt: Prompt, entryId: number, actor: Actor): Promise<void> {
  await db.transaction(async (sql) => {
    const { id, organisationId, publicId: subject } = prompt
    const isThere = await lockHistories(sql, organisationId, [id], [subject])
    const entry = isThere ? await selectEntry(sql, prompt, entryId) : undefined
    if (!entry) throw new ServiceError('not_found', `There is no history entry ${entryId} of this prompt.`)
    await writeReconciliation(sql, organisationId, { inserts: [], updates: [], deletes: [entry], mergedCommits: [] })
    // A closing is reported once: what follows at the same commit is another one.
    const mayComeBack = entry.action !== 'pr_closed' && (entry.in_git || entry.on_github)
    if (mayComeBack) await insertRemoved(sql, organisationId, entry)
    const details = { entry: showEntry(entry) }
    await recordAudit(sql, clock, actor, { organisationId, action: 'history.removed', subject, details })
  }, permitRequestOf(actor))
}
