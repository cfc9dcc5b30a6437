import { operator, permitRequestOf, recordAudit, type Viewer } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { invalid, ServiceError } from '../errors.ts'
import { type PageRequest, readPage } from '../lib/cursor_page.ts'
import { isDelivered } from './deliver.ts'
import { requireEndpoint } from './endpoints.ts'
import { createEventId } from './events.ts'
import type { DeliveryRow } from './schema.ts'
import type { SendOnce } from './send.ts'
import { lockEndpoint, restartDelivery, selectDeliveries } from './store.ts'

/** The deliveries of an endpoint, newest event first. */
export async function listDeliveries(db: Db, endpointId: string, request: PageRequest, viewer: Viewer) {
  const endpoint = await requireEndpoint(db.sql, endpointId, viewer)
  return readPage<DeliveryRow>(`deliveries ${endpoint.rowId}`, request, (beforeId, limit) =>
    selectDeliveries(db.sql, endpoint, beforeId, limit),
  )
}

/** Sends an event again, with every attempt that a new one has. */
export const redeliver = (
  db: Db,
  clock: Clock,
  endpointId: string,
  eventId: string,
  actor = operator,
): Promise<DeliveryRow> =>
  db.transaction(async (sql) => {
    const endpoint = await requireEndpoint(sql, endpointId, actor, lockEndpoint)
    if (endpoint.disabled_at) {
      const message = 'must be enabled'
      throw invalid('The endpoint is disabled. Enable it first.', [{ path: 'endpoint_id', message }])
    }
    const delivery = isEventId(eventId) ? await restartDelivery(sql, endpoint, eventId) : undefined
    if (!delivery) throw new ServiceError('not_found', `There is no delivery ${eventId} of this endpoint.`)
    const details = { event: eventId }
    const { organisationId } = endpoint
    const event = { organisationId, action: 'endpoint.redelivered', subject: endpointId, details } as const
    await recordAudit(sql, clock, actor, event)
    return delivery
  }, permitRequestOf(actor))

const isEventId = (text: string): boolean => /^msg_[0-9A-Za-z]{1,64}$/.test(text)

/** Sends a ping once, also to a disabled endpoint, and returns the outcome. Nothing is stored. */
export async function pingEndpoint(db: Db, clock: Clock, sendOnce: SendOnce, endpointId: string, viewer: Viewer) {
  const { kind, fullUrl: url, secrets } = await requireEndpoint(db.sql, endpointId, viewer)
  const now = clock.now()
  const id = createEventId()
  const event = { id, type: 'ping', timestamp: now, data: {} } as const
  const reply = await sendOnce({ kind, url, secrets }, event, now)
  return { id, delivered: isDelivered(reply), response_code: reply.code, response_text: reply.text }
}
