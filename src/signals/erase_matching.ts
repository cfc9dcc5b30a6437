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

/** Of the signals that match. A step examines a few thousand others on its way. */
const stepRows = 500

async function findStep(db: Db, prompt: Prompt, metadata: MetadataFilter, cursor: string | null) {
  const filter = { value: null, since: null, until: null, metadata }
  const query = { filter, change: null, page: { limit: stepRows, cursor } }
  const { data, nextCursor } = await db.heavyRead(prompt.organisationId, () => listSignals(db, prompt, query))
  return { prompt, ids: data.map(({ id }) => id), nextCursor }
}

/** For the audit log: without the values, which may name a person. */
const describe = (metadata: MetadataFilter, erased: number) => ({ metadata: metadata.map(([key]) => key), erased })

type Filter = { metadata: MetadataFilter; cursor: string | null }

/** One step. The next one begins at the cursor. */
export async function eraseMatching(db: Db, clock: Clock, prompt: Prompt, { metadata, cursor }: Filter, actor: Actor) {
  const { ids, nextCursor: next_cursor } = await findStep(db, prompt, metadata, cursor)
  if (ids.length === 0) return { erased: 0, next_cursor }
  return db.transaction(async (sql) => {
    const erased = await eraseSignals(sql, prompt, ids)
    const { organisationId, publicId: subject } = prompt
    const details = describe(metadata, erased)
    await recordAudit(sql, clock, actor, { organisationId, action: 'signals.purged', subject, details })
    return { erased, next_cursor }
  }, permitRequestOf(actor))
}

async function* findSteps(db: Db, source: PurgeSource, metadata: MetadataFilter) {
  for await (const prompts of promptsOf(db, source)) {
    for (const prompt of prompts) {
      let cursor: string | null = null
      do {
        const startedAt = performance.now()
        const step = await findStep(db, prompt, metadata, cursor)
        yield step
        cursor = step.nextCursor as string | null
        await yieldFor(startedAt)
      } while (cursor)
    }
  }
}

export async function countMatching(db: Db, source: PurgeSource, metadata: MetadataFilter): Promise<number> {
  let total = 0
  for await (const { ids } of findSteps(db, source, metadata)) total += ids.length
  return total
}

/** Erases all. The audit entry is written first, because the purge may be interrupted. */
export async function purgeMatching(db: Db, clock: Clock, source: PurgeSource, metadata: MetadataFilter) {
  const { organisationId, publicId: subject } = source
  const details = describe(metadata, await countMatching(db, source, metadata))
  const event = { organisationId, action: 'signals.purged', subject, details } as const
  await db.transaction((sql) => recordAudit(sql, clock, operator, event))
  let total = 0
  for await (const { prompt, ids } of findSteps(db, source, metadata)) total += await eraseSignals(db.sql, prompt, ids)
  return total
}
