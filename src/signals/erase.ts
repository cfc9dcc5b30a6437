import { type Actor, operator, permitRequestOf, recordAudit } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { notFound } from '../errors.ts'
import { yieldFor } from '../lib/periodic.ts'
import { listRetentions } from '../orgs/manage.ts'
import { type Prompt, readPrompts } from '../prompts/find.ts'
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
  }, permitRequestOf(actor))
}

/** Erases signals from before a time in short steps, with as much time for others in between. Returns how many. */
export async function purgeSignals(
  db: Db,
  clock: Clock,
  { organisationId, promptId, publicId: subject }: PurgeSource,
  before: Date,
  onProgress: (erased: number) => void = () => {},
): Promise<number> {
  // The audit entry is written first, so that it is there however far the rest comes.
  const event = {
    organisationId,
    action: 'signals.purged',
    subject,
    details: { before: before.toISOString() },
  } as const
  await db.transaction((sql) => recordAudit(sql, clock, operator, event))
  let total = 0
  const prompts = promptId === null ? readPrompts(db, organisationId) : [[{ id: promptId }]]
  await repeatSteps(prompts, async (id) => {
    const { found, erased } = await eraseBefore(db.sql, id, before, stepRows)
    total += erased
    onProgress(total)
    return found
  })
  return total
}

/**
 * Erases what is past the retention of its organisation. One replica does at a time: another that finds one at work leaves
 * it to that. `isOver` is asked before each step.
 */
export async function applyRetentions(db: Db, clock: Clock, isOver: () => boolean): Promise<void> {
  for (const { organisationId, days } of await listRetentions(db)) {
    const before = new Date(clock.now().getTime() - days * dayMs)
    const step = (promptId: number) =>
      db.transaction(
        async (sql) =>
          (await claimRetention(sql)) ? (await eraseBefore(sql, promptId, before, stepRows)).found : null,
        { tenant: organisationId },
      )
    const prompts = readPrompts(db, organisationId)
    if (!(await repeatSteps(prompts, async (promptId) => (isOver() ? null : step(promptId))))) return
  }
}

/**
 * Repeats a step for each prompt until it finds less than it may erase, and waits after each for as long as it took, so
 * that whatever waits for the database has its turn. Returns false when a step ended it all with null.
 */
async function repeatSteps(
  pages: Iterable<{ id: number }[]> | AsyncIterable<{ id: number }[]>,
  step: (promptId: number) => Promise<number | null>,
): Promise<boolean> {
  for await (const prompts of pages) {
    for (const { id } of prompts) {
      for (let found: number | null = stepRows; found === stepRows; ) {
        const beganAt = performance.now()
        found = await step(id)
        if (found === null) return false
        await yieldFor(beganAt)
      }
    }
  }
  return true
}
