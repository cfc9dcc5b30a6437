import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { unavailable } from '../errors.ts'
import { defineOperations, operation } from '../http/operation.ts'
import { pageAnswer } from '../http/paging.ts'
import type { limitOrganisations } from '../http/rate_limit.ts'
import type { Limiter } from '../lib/concurrency.ts'
import { cursorParams } from '../lib/cursor_page.ts'
import type { HostList } from '../lib/hosts.ts'
import {
  changeEndpoint,
  createEndpoint,
  endpointChangeBody,
  listDeliveries,
  listEndpoints,
  newEndpointBody,
  pingEndpoint,
  redeliver,
  removeEndpoint,
  rotateEndpoint,
  showEndpoint,
} from './endpoints.ts'
import {
  CreatedEndpoint,
  DeliveryList,
  DeliveryPath,
  EndpointList,
  EndpointPath,
  EndpointTest,
  endpointRotation,
  Redelivery,
  RemovedEndpoint,
  ShownEndpoint,
} from './schema.ts'
import type { SendOnce } from './send.ts'

type Needs = {
  db: Db
  clock: Clock
  allowedHosts: HostList | undefined
  sendOnce: SendOnce
  limitLong: Limiter
  /** Throws when the organisation tests endpoints too often. */
  limitTests: ReturnType<typeof limitOrganisations>
}

/** Longer than an attempt takes. */
const testMs = 20_000

const path = '/webhooks/endpoints'
const shown = { status: 200, description: 'The endpoint.', schema: ShownEndpoint }
const created = {
  status: 201,
  description: 'The endpoint with its secret, which is shown only here.',
  schema: CreatedEndpoint,
}

export const endpointOperations = defineOperations('Webhooks', {
  listEndpoints: operation({
    method: 'GET',
    path,
    scope: 'webhooks:read',
    summary: 'List webhook endpoints',
    description: 'Returns the endpoints of the organisation, newest first, without their secrets.',
    query: cursorParams,
    answer: pageAnswer('The endpoints.', EndpointList),
    run: ({ db }: Needs, { query, caller }) => listEndpoints(db, caller.organisationId, query),
  }),
  createEndpoint: operation({
    method: 'POST',
    path,
    scope: 'webhooks:write',
    summary: 'Create a webhook endpoint',
    description: 'Sends events to a URL from now on. An organisation has at most 20 endpoints.',
    body: newEndpointBody,
    answer: created,
    run: ({ db, clock, allowedHosts }: Needs, { body, caller, actor }) =>
      createEndpoint(db, clock, caller.organisationId, body, allowedHosts, actor),
  }),
  getEndpoint: operation({
    method: 'GET',
    path: `${path}/:endpoint_id`,
    scope: 'webhooks:read',
    summary: 'Show a webhook endpoint',
    description: 'Returns an endpoint without its secret.',
    params: EndpointPath,
    answer: shown,
    run: ({ db }: Needs, { params, caller }) => showEndpoint(db, params.endpoint_id, caller),
  }),
  changeEndpoint: operation({
    method: 'PATCH',
    path: `${path}/:endpoint_id`,
    scope: 'webhooks:write',
    summary: 'Change a webhook endpoint',
    description:
      'Changes the given properties of an endpoint. `"enabled": true` forgets its failures, and sends the events that ' +
      'were pending when it was disabled.',
    params: EndpointPath,
    body: endpointChangeBody,
    answer: shown,
    find: ({ db }: Needs, { params, caller }) => showEndpoint(db, params.endpoint_id, caller),
    run: ({ db, clock, allowedHosts }: Needs, { params, body, actor }) =>
      changeEndpoint(db, clock, params.endpoint_id, body, allowedHosts, actor),
  }),
  removeEndpoint: operation({
    method: 'DELETE',
    path: `${path}/:endpoint_id`,
    scope: 'webhooks:write',
    summary: 'Remove a webhook endpoint',
    description: 'Removes an endpoint and its deliveries, also the pending ones.',
    params: EndpointPath,
    answer: { status: 200, description: 'The id of the endpoint.', schema: RemovedEndpoint },
    run: ({ db, clock }: Needs, { params, actor }) => removeEndpoint(db, clock, params.endpoint_id, actor),
  }),
  rotateEndpoint: operation({
    method: 'POST',
    path: `${path}/:endpoint_id/rotate`,
    scope: 'webhooks:write',
    summary: 'Rotate the secret of a webhook endpoint',
    description: 'Generates a secret. The old ones, at most four, sign beside it until the overlap ends.',
    params: EndpointPath,
    body: endpointRotation,
    answer: created,
    find: ({ db }: Needs, { params, caller }) => showEndpoint(db, params.endpoint_id, caller),
    run: ({ db, clock }: Needs, { params, body: overlapMs, actor }) =>
      rotateEndpoint(db, clock, params.endpoint_id, overlapMs, actor),
  }),
  testEndpoint: operation({
    method: 'POST',
    path: `${path}/:endpoint_id/test`,
    scope: 'webhooks:write',
    summary: 'Test a webhook endpoint',
    description:
      'Sends a ping once, also to a disabled endpoint, and returns the outcome after up to 15 seconds. The ping is not ' +
      'among the deliveries. An organisation has ten tests a minute.',
    params: EndpointPath,
    answer: { status: 200, description: 'What the receiver answered.', schema: EndpointTest },
    run({ db, clock, sendOnce, limitLong, limitTests }: Needs, { params, caller, context }) {
      limitTests(context, caller.organisationId)
      const ping = () => {
        context.pauseDeadline(testMs, () => unavailable('timeout'))
        return pingEndpoint(db, clock, sendOnce, params.endpoint_id, caller)
      }
      return limitLong(ping, { tenant: caller.organisationId })
    },
  }),
  listDeliveries: operation({
    method: 'GET',
    path: `${path}/:endpoint_id/deliveries`,
    scope: 'webhooks:read',
    summary: 'List the deliveries of a webhook endpoint',
    description: 'Returns the events of the last 32 days that were sent, or will be, newest first.',
    params: EndpointPath,
    query: cursorParams,
    answer: pageAnswer('A page of deliveries.', DeliveryList),
    run: ({ db }: Needs, { params, query, caller }) => listDeliveries(db, params.endpoint_id, query, caller),
  }),
  redeliver: operation({
    method: 'POST',
    path: `${path}/:endpoint_id/deliveries/:event_id/redeliver`,
    scope: 'webhooks:write',
    summary: 'Send an event again',
    description: 'Sends an event to the endpoint again, with the same webhook-id, and retries it like a new one.',
    params: DeliveryPath,
    answer: { status: 200, description: 'The delivery.', schema: Redelivery },
    errors: [422],
    invalid: {
      meaning: 'The endpoint is disabled.',
      message: 'The endpoint is disabled.',
      example: { details: [{ path: 'endpoint_id', message: 'must be enabled' }] },
    },
    run: ({ db, clock }: Needs, { params, actor }) => redeliver(db, clock, params.endpoint_id, params.event_id, actor),
  }),
})
