import type { Db, Sql } from '../db/client.ts'
import { pruneTable } from '../db/prune.ts'
import { randomBase62 } from '../lib/base62.ts'
import { repeatStep } from '../lib/periodic.ts'
import { dayMs } from '../lib/times.ts'
import type { EventData, EventType } from './message.ts'
import { failBacklogs, insertEvent } from './store_events.ts'

export { copyVerdicts, forgetChecks } from './store_announce.ts'
export { deleteEventsAbout } from './store_events.ts'

type EventToEmit<T extends EventType> = {
  organisationId: number
  type: T
  /** Of events with the same key, an organisation's endpoints get only the first. */
  dedupKey: string
  /** The public id. Without it, endpoints get the event whichever prompts they chose. */
  promptId?: string
  data: EventData[T]
  now: Date
}

export const createEventId = (): string => `msg_${randomBase62(16)}`

/**
 * Writes an event and its deliveries in the caller's transaction, in one statement. Writes nothing when no enabled endpoint
 * wants it. Delivery starts within a second of the commit.
 */
export const emitEvent = <T extends EventType>(sql: Sql, event: EventToEmit<T>): Promise<void> =>
  insertEvent(sql, createEventId(), event)

/** Longer than a month: while an event is kept, none with its key is written again. Its attempts end after four days. */
const keptMs = 32 * dayMs

/** How many events wait for an endpoint, which may be slower than they come. */
const maxPending = 10_000

const stepRows = 1_000

/** Deletes old events with their deliveries, and ends those that wait for a receiver that is too slow. */
export async function pruneEvents(db: Db, now: Date, pending = maxPending): Promise<void> {
  await pruneTable(db, 'webhook_events', 'created_at', new Date(now.getTime() - keptMs))
  await repeatStep(stepRows, () => failBacklogs(db.sql, pending, stepRows))
}
