import { Elysia } from 'elysia'
import { keyHolder } from '../audit/record.ts'
import type { Sql } from '../db/client.ts'
import type { Services } from '../deps.ts'
import { parseJson, readJsonText } from '../http/body.ts'
import { describeOperations } from '../http/describe.ts'
import { readIdempotentRequest, replyCreated } from '../http/idempotency.ts'
import type { RouteWrapper } from '../http/middleware.ts'
import { describePage, pageRequestOf, replyPage } from '../http/paging.ts'
import { visibleTo } from '../http/request_context.ts'
import { changeOnce } from '../idempotency/replay.ts'
import {
  changeEndpoint,
  createEndpointInTransaction,
  type EndpointWithSecret,
  listEndpoints,
  removeEndpoint,
  rotateEndpointInTransaction,
  showEndpoint,
  validateEndpointChange,
  validateNewEndpoint,
} from './endpoints.ts'
import {
  ChangedEndpoint,
  CreatedEndpoint,
  EndpointChange,
  EndpointList,
  EndpointPath,
  endpointRotation,
  NewEndpoint,
  RemovedEndpoint,
  RotatedEndpoint,
  rotationAlwaysShows,
  ShownEndpoint,
} from './schema.ts'

type EndpointParams = { endpoint_id: string }

const invalidEndpoint = {
  message: 'The endpoint is not valid.',
  example: { details: [{ path: '/url', message: 'must have no fragment' }] },
}

const created = {
  status: 201,
  description: 'The endpoint with its secret, which is shown only here.',
  schema: CreatedEndpoint,
}

const operations = describeOperations('Webhooks', {
  listEndpoints: {
    summary: 'List webhook endpoints',
    description: 'Returns the endpoints of the organisation, newest first, without their secrets.',
    ...describePage('The endpoints.', EndpointList),
  },
  createEndpoint: {
    summary: 'Create a webhook endpoint',
    description:
      'Sends events to a URL from now on. An organisation has at most 20 endpoints. A retry does not show the secret ' +
      'again: if the first answer was lost, rotate it.',
    isIdempotent: true,
    body: NewEndpoint,
    success: created,
    invalid: invalidEndpoint,
  },
  getEndpoint: {
    summary: 'Show a webhook endpoint',
    description: 'Returns an endpoint without its secret.',
    path: EndpointPath,
    success: { status: 200, description: 'The endpoint.', schema: ShownEndpoint },
  },
  changeEndpoint: {
    summary: 'Change a webhook endpoint',
    description:
      'Changes the given properties of an endpoint. `"enabled": true` forgets its failures, and sends the events that ' +
      'were pending when it was disabled.',
    path: EndpointPath,
    body: EndpointChange,
    success: {
      status: 200,
      description: 'The endpoint. Without the scope webhooks:read, only its id and what was changed.',
      schema: ChangedEndpoint,
    },
    invalid: invalidEndpoint,
  },
  removeEndpoint: {
    summary: 'Remove a webhook endpoint',
    description: 'Removes an endpoint and its deliveries, also the pending ones.',
    path: EndpointPath,
    success: { status: 200, description: 'The id of the endpoint.', schema: RemovedEndpoint },
  },
  rotateEndpoint: {
    summary: 'Rotate the secret of a webhook endpoint',
    description: 'Generates a secret. The old one signs beside it until the overlap ends.',
    path: EndpointPath,
    ...endpointRotation.described,
    success: { ...created, schema: RotatedEndpoint },
  },
})

export const endpointRoutes = ({ db, clock, allowedHosts }: Services, { authenticated }: RouteWrapper) =>
  new Elysia({ name: 'endpoints' })
    .get(
      '/api/v1/webhooks/endpoints',
      authenticated('webhooks:read', async (context, _: object, { organisationId }) =>
        replyPage(context, await listEndpoints(db, organisationId, pageRequestOf(context))),
      ),
      { detail: operations.listEndpoints },
    )
    .post(
      '/api/v1/webhooks/endpoints',
      authenticated('webhooks:write', async (context, _: object, caller) => {
        const { organisationId } = caller
        const { body, request } = await readIdempotentRequest(context, organisationId, validateNewEndpoint)
        const actor = keyHolder(caller, context)
        const make = (sql: Sql) => createEndpointInTransaction(sql, clock, organisationId, body, allowedHosts, actor)
        return replyCreated(context, await changeOnce(db, clock, request, make, withoutSecret))
      }),
      { detail: operations.createEndpoint },
    )
    .get(
      '/api/v1/webhooks/endpoints/:endpoint_id',
      authenticated('webhooks:read', async (context, { endpoint_id: id }: EndpointParams, caller) =>
        context.replyData(await showEndpoint(db, id, caller)),
      ),
      { detail: operations.getEndpoint },
    )
    .patch(
      '/api/v1/webhooks/endpoints/:endpoint_id',
      authenticated('webhooks:write', async (context, { endpoint_id: id }: EndpointParams, caller) => {
        await showEndpoint(db, id, caller)
        const given = validateEndpointChange(parseJson(await readJsonText(context)))
        const changed = await changeEndpoint(db, clock, id, given, allowedHosts, keyHolder(caller, context))
        return context.replyData(visibleTo(caller, 'webhooks:read', changed, ['id', ...Object.keys(given)]))
      }),
      { detail: operations.changeEndpoint },
    )
    .delete(
      '/api/v1/webhooks/endpoints/:endpoint_id',
      authenticated('webhooks:write', async (context, { endpoint_id: id }: EndpointParams, caller) =>
        context.replyData(await removeEndpoint(db, clock, id, keyHolder(caller, context))),
      ),
      { detail: operations.removeEndpoint },
    )
    .post(
      '/api/v1/webhooks/endpoints/:endpoint_id/rotate',
      authenticated('webhooks:write', async (context, { endpoint_id: id }: EndpointParams, caller) => {
        await showEndpoint(db, id, caller)
        const { body: overlapMs, request } = await readIdempotentRequest(
          context,
          caller.organisationId,
          endpointRotation.parse,
        )
        const rotate = (sql: Sql) => rotateEndpointInTransaction(sql, clock, id, overlapMs, keyHolder(caller, context))
        const { answer, isReplayed } = await changeOnce(db, clock, request, rotate, withoutSecret)
        return replyCreated(context, {
          answer: visibleTo(caller, 'webhooks:read', answer, rotationAlwaysShows),
          isReplayed,
        })
      }),
      { detail: operations.rotateEndpoint },
    )

const withoutSecret = (endpoint: EndpointWithSecret) => ({ ...endpoint, secret: null })
