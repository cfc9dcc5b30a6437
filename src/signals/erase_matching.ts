// Erases the signals of a person: those whose metadata has a value. No index finds them, so all signals are examined.
import { type Actor, operator, permitRequestOf, recordAudit } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { yieldFor } from '../lib/periodic.ts'
import type { Prompt } from '../prompts/find.ts'
import { type PurgeSource, promptsOf } from './erase.ts'
import { listSignals } from './read.ts'
import type { SignalListQuery } from './schema_params.ts'
import { eraseSignals } from './store_bulk.ts'

export type MetadataFilter = SignalListQuery['filter']['metadata']

type Handle = (prompt: Prompt, ids: number[]) => Promise<number>

/** Of the signals that match. A step examines a few thousand others on its way. */
const stepRows = 500

async function takeStep(db: Db, prompt: Prompt, metadata: MetadataFilter, cursor: string | null, handle: Handle) {
  const filter = { value: null, since: null, until: null, metadata }
  const query = { filter, change: null, page: { limit: stepRows, cursor } }
  const { data, nextCursor } = await db.heavyRead(prompt.organisationId, () => listSignals(db, prompt, query))
  const ids = data.map(({ id }) => id)
  return { erased: ids.length > 0 ? await handle(prompt, ids) : 0, next_cursor: nextCursor }
}

/** Names the fields of the filter, but not their values, which may name a person. */
const purged = (organisationId: number, subject: string, filter: MetadataFilter, erased: number) =>
  ({
    organisationId,
    action: 'signals.purged',
    subject,
    details: { metadata: filter.map(([key]) => key), erased },
  }) as const

/** One step. The next one begins at the cursor. */
export const eraseMatching = (
  db: Db,
  clock: Clock,
  prompt: Prompt,
  { metadata, cursor }: { metadata: MetadataFilter; cursor: string | null },
  actor: Actor,
) =>
  takeStep(db, prompt, metadata, cursor, (_, ids) =>
    db.transaction(async (sql) => {
      const erased = await eraseSignals(sql, prompt, ids)
      await recordAudit(sql, clock, actor, purged(prompt.organisationId, prompt.publicId, metadata, erased))
      return erased
    }, permitRequestOf(actor)),
  )

async function takeSteps(db: Db, source: PurgeSource, metadata: MetadataFilter, handle: Handle): Promise<number> {
  let total = 0
  for await (const prompts of promptsOf(db, source)) {
    for (const prompt of prompts) {
      let cursor: string | null = null
      do {
        const startedAt = performance.now()
        const step = await takeStep(db, prompt, metadata, cursor, handle)
        total += step.erased
        cursor = step.next_cursor
        await yieldFor(startedAt)
      } while (cursor)
    }
  }
  return total
}

export const countMatching = (db: Db, source: PurgeSource, metadata: MetadataFilter): Promise<number> =>
  takeSteps(db, source, metadata, async (_, ids) => ids.length)

/** Erases all, `found` by their count. The audit entry is written first, because the purge may be interrupted. */
export async function purgeMatching(
  db: Db,
  clock: Clock,
  source: PurgeSource,
  metadata: MetadataFilter,
  found: number,
): Promise<number> {
  const event = purged(source.organisationId, source.publicId, metadata, found)
  await db.transaction((sql) => recordAudit(sql, clock, operator, event))
  return takeSteps(db, source, metadata, (prompt, ids) => eraseSignals(db.sql, prompt, ids))
}
