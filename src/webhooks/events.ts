// The events that endpoints are told of. Their data is sent as it is stored, so it is complete without a call back.
import type { Db, Sql } from '../db/client.ts'
import { pruneTable } from '../db/prune.ts'
import type { HistoryEntry } from '../history/schema.ts'
import type { Impact } from '../impact/schema.ts'
import { randomBase62 } from '../lib/base62.ts'
import { insertEvent, isAwaited } from './store_events.ts'

export { deleteEventsAbout } from './store_events.ts'

type Named = { id: string; name: string }

/** What each event says. The keys are the event types. */
export type EventData = {
  'change.live': { prompt: Named; change: HistoryEntry }
  'impact.decided': Impact & { prompt: Named; sentence: string }
  'usage.threshold': { organisation: Named; month: string; threshold: 80 | 100; used: number; limit: number }
  ping: Record<string, never>
}

type EventType = keyof EventData

/** An event as it is sent. The id is the `webhook-id` of every attempt. */
export type WebhookEvent = { [T in EventType]: { id: string; type: T; timestamp: Date; data: EventData[T] } }[EventType]

type EventToEmit<T extends EventType> = {
  organisationId: number
  type: T
  /** Names what happened: of events with the same one, an organisation's endpoints get only the first. */
  once: string
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

const keptMs = 14 * 24 * 3_600_000

/** Deletes events, with their deliveries, 14 days after they happened, unless an enabled endpoint still waits for one. */
export const pruneEvents = (db: Db, now: Date): Promise<void> =>
  pruneTable(db, 'webhook_events', 'created_at', new Date(now.getTime() - keptMs), `not ${isAwaited}`)
