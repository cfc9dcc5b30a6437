import { type Actor, claimOf, operator, recordAudit } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { notFound } from '../errors.ts'
import { restAfter } from '../lib/rest.ts'
import { listRetentions } from '../orgs/manage.ts'
import type { Prompt } from '../prompts/find.ts'
import { promptsOf } from './prompts.ts'
import { claimRetention, eraseBefore, eraseSignal } from './store_erase.ts'

/** Whose signals are erased: those of an organisation, or of one of its prompts; with the public id of either. */
export type PurgeSource = { organisationId: number; promptId: number | null; publicId: string }

/** A step takes some tens of milliseconds, in which the embedded engine does nothing else. */
const stepRows = 500
const dayMs = 86_400_000

/** Erases one signal for good. The month's count stays as it is: what was recorded has been recorded. */
export async function eraseOne(
  db: Db,
  clock: Clock,
  { id: promptId, organisationId }: Prompt,
  publicId: string,
  signalId: number,
  actor: Actor,
): Promise<void> {
  await db.transaction(async (sql) => {
    if (!(await eraseSignal(sql, promptId, signalId))) throw notFound()
    const details = { signal: signalId }
    await recordAudit(sql, clock, actor, { organisationId, action: 'signal.erased', subject: publicId, details })
  }, claimOf(actor))
}

/** Erases signals from before a time in short steps, with as much time for others in between. Returns how many. */
export async function purgeSignals(
  db: Db,
  clock: Clock,
  { organisationId, promptId, publicId: subject }: PurgeSource,
  before: Date,
  onProgress: (erased: number) => void = () => {},
): Promise<number> {
  // Written first, so that it is there however far the rest comes.
  const event = {
    organisationId,
    action: 'signals.purged',
    subject,
    details: { before: before.toISOString() },
  } as const
  await db.transaction((sql) => recordAudit(sql, clock, operator, event))
  let total = 0
  for await (const id of promptId === null ? promptIdsOf(db, organisationId) : [promptId]) {
    for (let found = stepRows; found === stepRows; ) {
      const beganAt = performance.now()
      const step = await eraseBefore(db.sql, id, before, stepRows)
      found = step.found
      total += step.erased
      onProgress(total)
      await restAfter(beganAt)
    }
  }
  return total
}

/**
 * Erases what is past the retention of its organisation. One replica does at a time: another that finds one at work leaves
 * it to that. `isOver` is asked before each step.
 */
export async function applyRetentions(db: Db, clock: Clock, isOver: () => boolean): Promise<void> {
  for (const { organisationId, days } of await listRetentions(db)) {
    const before = new Date(clock.now().getTime() - days * dayMs)
    for await (const promptId of promptIdsOf(db, organisationId)) {
      for (let found = stepRows; found === stepRows; ) {
        if (isOver()) return
        const beganAt = performance.now()
        const step = await db.transaction(
          async (sql) => ((await claimRetention(sql)) ? eraseBefore(sql, promptId, before, stepRows) : null),
          { tenant: organisationId },
        )
        if (step === null) return
        found = step.found
        await restAfter(beganAt)
      }
    }
  }
}

async function* promptIdsOf(db: Db, organisationId: number): AsyncGenerator<number> {
  for await (const prompts of promptsOf(db, organisationId)) for (const { id } of prompts) yield id
}
