import { Elysia } from 'elysia'
import { keyHolder } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { visibleTo } from '../http/caller.ts'
import { describeOperations } from '../http/describe.ts'
import type { RouteWrapper } from '../http/middleware.ts'
import { describePage, pageRequestOf, replyJsonPage } from '../http/paging.ts'
import { listDeliveries, redeliver } from './deliveries.ts'
import { EndpointPath } from './schema.ts'
import { DeliveryList, DeliveryPath, Redelivery, redeliveryAlwaysShows } from './schema_deliveries.ts'

type Services = { db: Db; clock: Clock }
type EndpointParams = { endpoint_id: string }
type DeliveryParams = EndpointParams & { event_id: string }

const operations = describeOperations('Webhooks', {
  listDeliveries: {
    summary: 'List the deliveries of a webhook endpoint',
    description: 'Returns the events of the last 14 days that were sent, or will be, newest first.',
    path: EndpointPath,
    ...describePage('A page of deliveries.', DeliveryList),
  },
  redeliver: {
    summary: 'Send an event again',
    description: 'Sends an event to the endpoint again, with the same webhook-id, and retries it like a new one.',
    path: DeliveryPath,
    success: {
      status: 200,
      description: 'The delivery. Without the scope webhooks:read, only its id and when it is sent.',
      schema: Redelivery,
    },
    errors: [422],
    invalid: {
      meaning: 'The endpoint is disabled.',
      message: 'The endpoint is disabled. Enable it first.',
      example: { details: [{ path: 'endpoint_id', message: 'must be enabled' }] },
    },
  },
})

export const endpointDeliveryRoutes = ({ db, clock }: Services, { authenticated }: RouteWrapper) =>
  new Elysia({ name: 'endpoint deliveries' })
    .get(
      '/api/v1/webhooks/endpoints/:endpoint_id/deliveries',
      authenticated('webhooks:read', async (context, { endpoint_id: id }: EndpointParams, caller) => {
        const { data, limit, nextCursor } = await listDeliveries(db, id, pageRequestOf(context), caller)
        const path = `/api/v1/webhooks/endpoints/${id}/deliveries`
        return replyJsonPage(context, path, JSON.stringify(data), limit, nextCursor)
      }),
      { detail: operations.listDeliveries },
    )
    .post(
      '/api/v1/webhooks/endpoints/:endpoint_id/deliveries/:event_id/redeliver',
      authenticated('webhooks:write', async (context, params: DeliveryParams, caller) => {
        const { endpoint_id: id, event_id: event } = params
        const delivery = await redeliver(db, clock, id, event, keyHolder(caller, context))
        return context.replyData(visibleTo(caller, 'webhooks:read', delivery, redeliveryAlwaysShows))
      }),
      { parse: 'none', detail: operations.redeliver },
    )
