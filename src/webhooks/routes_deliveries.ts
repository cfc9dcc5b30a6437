import { Elysia } from 'elysia'
import { keyHolder } from '../audit/record.ts'
import type { Services } from '../deps.ts'
import { unavailable } from '../errors.ts'
import { createInFlightLimiter } from '../http/body.ts'
import { describeOperations } from '../http/describe.ts'
import type { RouteWrapper } from '../http/middleware.ts'
import { describePage, pageRequestOf, replyJsonPage } from '../http/paging.ts'
import { visibleTo } from '../http/request_context.ts'
import { listDeliveries, pingEndpoint, redeliver } from './deliveries.ts'
import { DeliveryList, DeliveryPath, EndpointPath, EndpointTest, Redelivery, redeliveryAlwaysShows } from './schema.ts'

type EndpointParams = { endpoint_id: string }
type DeliveryParams = EndpointParams & { event_id: string }

/** Longer than an attempt takes. */
const testMs = 20_000

const operations = describeOperations('Webhooks', {
  testEndpoint: {
    summary: 'Test a webhook endpoint',
    description:
      'Sends a ping once, also to a disabled endpoint, and returns the outcome after up to 15 seconds. The ping is not ' +
      'among the deliveries.',
    path: EndpointPath,
    success: { status: 200, description: 'What the receiver answered.', schema: EndpointTest },
  },
  listDeliveries: {
    summary: 'List the deliveries of a webhook endpoint',
    description: 'Returns the events of the last 32 days that were sent, or will be, newest first.',
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

export function endpointDeliveryRoutes({ db, clock, sendOnce }: Services, { authenticated }: RouteWrapper) {
  const tests = createInFlightLimiter({
    perTenant: { requests: 2, bytes: 0 },
    inAll: { requests: 20, bytes: 0 },
    rejectWith: () => unavailable('overload', 'Too many tests are in flight. Try again shortly.', 5),
  })
  return new Elysia({ name: 'endpoint deliveries' })
    .post(
      '/api/v1/webhooks/endpoints/:endpoint_id/test',
      authenticated('webhooks:write', (context, { endpoint_id: id }: EndpointParams, caller) =>
        tests.run(caller.organisationId, async () => {
          context.pauseDeadline(testMs, () => unavailable('timeout'))
          return context.replyData(await pingEndpoint(db, clock, sendOnce, id, caller))
        }),
      ),
      { detail: operations.testEndpoint },
    )
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
      { detail: operations.redeliver },
    )
}
