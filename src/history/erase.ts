import type { Db } from '../db/client.ts'
import { repeatStep } from '../lib/periodic.ts'
import type { Prompt } from '../prompts/find.ts'
import { selectNewestEntries } from './store_known.ts'
import { lockHistories, writeReconciliation } from './store_write.ts'
import { eraseTexts } from './texts.ts'

export { deleteHistory } from './store_write.ts'

/** The size of a step: the embedded engine does nothing else meanwhile. */
const stepRows = 500

/** Erases the texts and the entries of a prompt in short steps. What is left of the history stays readable meanwhile. */
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
