import { type Actor, operator, permitRequestOf, recordAudit } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { ServiceError } from '../errors.ts'
import { repeatStep } from '../lib/periodic.ts'
import type { Owner } from '../orgs/manage.ts'
import type { Prompt } from '../prompts/find.ts'
import { forgetChecks } from '../webhooks/events.ts'
import { liveActions, showEntry } from './schema.ts'
import { type EntriesOf, selectEntries, selectEntriesOf, selectNewestEntries } from './store.ts'
import { deleteMergedCommits, eraseTextsOf, insertRemoved } from './store_erase.ts'
import { lockHistories } from './store_write.ts'
import { writeReconciliation } from './write.ts'

export { deleteHistory } from './store_erase.ts'

/** The size of a step: the embedded engine does nothing else meanwhile. */
const stepRows = 500

const nothing = { inserts: [], updates: [], deletes: [], mergedCommits: [] }

/** Erases the entries of a prompt in short steps, with their texts. The rest of the history stays readable meanwhile. */
export async function eraseHistory(db: Db, prompt: Prompt): Promise<void> {
  const { id, organisationId, publicId } = prompt
  await repeatStep(stepRows, () =>
    db.transaction(async (sql) => {
      await lockHistories(sql, organisationId, [id], [publicId])
      const deletes = await selectNewestEntries(sql, prompt, stepRows)
      await writeReconciliation(sql, organisationId, { ...nothing, deletes })
      return deletes.length
    }),
  )
}

/** Removes a wrong entry. If sync or the webhook had reported it, they do not bring it back. */
export async function removeEntry(db: Db, clock: Clock, prompt: Prompt, entryId: number, actor: Actor): Promise<void> {
  await db.transaction(async (sql) => {
    const { id, organisationId, publicId: subject } = prompt
    const isThere = await lockHistories(sql, organisationId, [id], [subject])
    const [entry] = isThere ? await selectEntries(sql, organisationId, [entryId]) : []
    if (entry?.prompt_id !== id)
      throw new ServiceError('not_found', `There is no history entry ${entryId} of this prompt.`)
    await writeReconciliation(sql, organisationId, { ...nothing, deletes: [entry] })
    await forgetChecks(sql, organisationId, [id])
    // A closing is reported once: what follows at the same commit is another one.
    const mayComeBack = entry.action !== 'pr_closed' && (entry.in_git || entry.on_github)
    if (mayComeBack) await insertRemoved(sql, organisationId, entry)
    const details = { entry: showEntry(entry) }
    await recordAudit(sql, clock, actor, { organisationId, action: 'history.removed', subject, details })
  }, permitRequestOf(actor))
}

/**
 * Removes entries that a sync of the wrong branch or file added, in short steps. It is in the audit log first, because it may
 * be interrupted. Unlike a single entry, they come back with a sync that reads them again.
 */
export async function removeEntries(
  db: Db,
  clock: Clock,
  { organisationId, org }: Owner,
  prompt: Prompt | null,
  { branch, file, isDryRun }: Omit<EntriesOf, 'promptId'> & { isDryRun: boolean },
  actor: Actor,
): Promise<number> {
  const wanted = { promptId: prompt?.id ?? null, branch, file }
  const found = await db.heavyRead(organisationId, () => selectEntriesOf(db.sql, organisationId, wanted, liveActions))
  if (isDryRun || found.length === 0) return found.length
  const details = { entries: found.length, ...(branch !== null && { branch }), ...file }
  const event = { organisationId, action: 'history.removed', subject: prompt?.publicId ?? org, details } as const
  await db.transaction((sql) => recordAudit(sql, clock, actor, event), permitRequestOf(actor))
  for (let first = 0; first < found.length; first += stepRows) {
    const step = found.slice(first, first + stepRows)
    const promptIds = step.map(({ prompt_id }) => prompt_id)
    await db.transaction(async (sql) => {
      await lockHistories(sql, organisationId, promptIds)
      const ids = step.map(({ id }) => id)
      const deletes = await selectEntries(sql, organisationId, ids)
      await writeReconciliation(sql, organisationId, { ...nothing, deletes })
      const merges = deletes.filter(({ action }) => action === 'pr_merged')
      await deleteMergedCommits(sql, organisationId, merges)
      await forgetChecks(sql, organisationId, promptIds)
    }, permitRequestOf(actor))
  }
  return found.length
}

/** Erases the texts of a prompt, or of all prompts of an organisation, in short steps. Returns the number of entries. */
export const eraseTexts = (db: Db, organisationId: number, promptId: number | null = null): Promise<number> =>
  repeatStep(stepRows, () => eraseTextsOf(db.sql, organisationId, promptId, stepRows))

/** Erases the texts of a prompt. The audit entry is written first, because the command may be interrupted. */
export async function forgetTexts(db: Db, clock: Clock, { id, organisationId, publicId: subject }: Prompt) {
  const event = { organisationId, action: 'prompt.texts_erased', subject } as const
  await db.transaction((sql) => recordAudit(sql, clock, operator, event))
  return eraseTexts(db, organisationId, id)
}
