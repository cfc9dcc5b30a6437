import type { Actor } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { requireEndpoint } from './endpoints.ts'
import { createEventId } from './events.ts'
import { isDelivered } from './outcome.ts'
import type { SendOnce } from './send.ts'
import { selectReceiver } from './store.ts'

/** Sends a ping once, also to a disabled endpoint, and returns the outcome. Nothing is stored. */
export async function pingEndpoint(
  db: Db,
  clock: Clock,
  sendOnce: SendOnce,
  endpointId: string,
  viewer: Pick<Actor, 'organisationId'>,
) {
  const endpoint = await requireEndpoint(db.sql, endpointId, viewer)
  const now = clock.now()
  const id = createEventId()
  const event = { id, type: 'ping', timestamp: now, data: {} } as const
  const reply = await sendOnce(await selectReceiver(db.sql, endpoint), event, now)
  return { id, delivered: isDelivered(reply), response_code: reply.code, response_text: reply.text }
}
