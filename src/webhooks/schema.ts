import { type Static, Type } from '@sinclair/typebox'
import { cursorPageOf } from '../lib/cursor_page.ts'
import { rotationBody } from '../lib/rotation.ts'
import { envelopeOf, literals, nullable, printable, type Row } from '../lib/typebox.ts'

/** The events that an endpoint can choose. A ping is sent only on request. */
const chosenEvents = ['change.live', 'impact.decided', 'rate.changed', 'usage.threshold'] as const

export const endpointKinds = ['webhook', 'slack'] as const
export type EndpointKind = (typeof endpointKinds)[number]

/** Why an endpoint is disabled: by a change, by a 410, after days of failures only, or because a backup was restored. */
const disabledReasons = ['requested', 'gone', 'failing', 'restored'] as const

const time = Type.String({ format: 'date-time' })

const chosen = {
  events: nullable(
    Type.Array(literals(chosenEvents), { minItems: 1, maxItems: 10 }),
    'The types of events that are sent; null for all',
  ),
  prompts: nullable(
    Type.Array(Type.String(), { minItems: 1, maxItems: 100 }),
    'The prompts whose events are sent; null for all. Events without a prompt are sent in any case',
  ),
}

const fields = {
  id: Type.String({ description: 'Public id of the endpoint' }),
  kind: literals(endpointKinds, {
    description: 'webhook: signed JSON. slack: a message for an incoming webhook of Slack, Mattermost or Rocket.Chat',
  }),
  url: Type.String({
    description: 'Where events are sent to. A query, and of kind slack also the path, is a secret and shown as …',
  }),
  ...chosen,
  enabled: Type.Boolean({ description: 'Whether events are sent' }),
  disabled_reason: Type.Union([...disabledReasons.map((reason) => Type.Literal(reason)), Type.Null()], {
    description:
      'requested: by a change. gone: the receiver answered 410. failing: every attempt failed for five days. ' +
      'restored: it comes from a backup. Null while enabled',
  }),
  disabled_at: nullable(time, 'Null while enabled'),
  failing_since_at: nullable(time, 'The first failure since the last success; null after a success'),
  old_secret_ends_at: nullable(time, 'Until then the old secrets sign too'),
  created_at: time,
}

const Endpoint = Type.Object(fields, { title: 'WebhookEndpoint' })

export type EndpointRow = Row<typeof Endpoint>

const exampleEndpoint = {
  id: 'whe_8sQxVn2c1LrT0aZk',
  kind: 'webhook',
  url: 'https://example.com/prompt-signals',
  events: ['impact.decided'],
  prompts: null,
  enabled: true,
  disabled_reason: null,
  disabled_at: null,
  failing_since_at: null,
  old_secret_ends_at: null,
  created_at: '2026-11-14T23:35:00.000Z',
}

const endpointId = Type.String({ description: 'Public id of the endpoint', examples: [exampleEndpoint.id] })

export const EndpointPath = Type.Object({ endpoint_id: endpointId })

export const EndpointList = cursorPageOf(Endpoint, exampleEndpoint)

export const ShownEndpoint = envelopeOf(Endpoint, 'ShownWebhookEndpoint', exampleEndpoint)

export const RemovedEndpoint = envelopeOf(Type.Object({ id: fields.id }), 'RemovedWebhookEndpoint', {
  id: exampleEndpoint.id,
})

const secret = Type.String({ description: 'Signs what is sent: whsec_ and base64. Shown only here' })

export const CreatedEndpoint = envelopeOf(Type.Object({ ...fields, secret }), 'CreatedWebhookEndpoint', {
  ...exampleEndpoint,
  secret: `whsec_${Buffer.alloc(32, 'example').toString('base64')}`,
})

export const NewEndpoint = Type.Object(
  {
    url: printable(2_000),
    kind: Type.Optional(literals(endpointKinds, { description: 'webhook by default' })),
    events: Type.Optional(chosen.events),
    prompts: Type.Optional(chosen.prompts),
    enabled: Type.Optional(Type.Boolean({ description: 'true by default' })),
  },
  { title: 'NewWebhookEndpoint', examples: [{ url: exampleEndpoint.url, events: exampleEndpoint.events }] },
)

export type NewEndpoint = Static<typeof NewEndpoint>

export const EndpointChange = Type.Partial(NewEndpoint, {
  title: 'WebhookEndpointChange',
  examples: [{ enabled: true }],
})

export type EndpointChange = Static<typeof EndpointChange>

export const endpointRotation = rotationBody(
  'WebhookEndpointRotation',
  30,
  'How long the old secrets sign beside the new one',
)

const response = {
  response_code: nullable(Type.Integer(), 'The status of the last response; null for none'),
  response_text: nullable(
    Type.String(),
    'The first 1,000 characters of the last response, or why there was none; null before the first attempt',
  ),
}

const Delivery = Type.Object(
  {
    id: Type.String({ description: 'Public id of the event: the webhook-id of every attempt' }),
    type: Type.String({ description: 'Type of the event' }),
    created_at: time,
    status: literals(['pending', 'delivered', 'failed'], {
      description: 'delivered: the receiver answered with 2xx. failed: nothing more is sent',
    }),
    attempts: Type.Integer(),
    last_attempt_at: nullable(time, 'Null before the first attempt'),
    next_attempt_at: nullable(time, 'Null unless it is pending'),
    ...response,
  },
  { title: 'WebhookDelivery' },
)

export type DeliveryRow = Row<typeof Delivery>

const exampleDelivery = {
  id: 'msg_0pLmWc5y9BqE3nRd',
  type: 'impact.decided',
  created_at: '2026-11-14T23:35:00.000Z',
  status: 'pending',
  attempts: 2,
  last_attempt_at: '2026-11-14T23:35:05.000Z',
  next_attempt_at: '2026-11-14T23:40:05.000Z',
  response_code: 503,
  response_text: 'Try again later.',
}

export const DeliveryPath = Type.Object({
  ...EndpointPath.properties,
  event_id: Type.String({ description: 'Public id of the event', examples: [exampleDelivery.id] }),
})

export const DeliveryList = cursorPageOf(Delivery, exampleDelivery)

export const Redelivery = envelopeOf(Delivery, 'WebhookRedelivery', {
  ...exampleDelivery,
  attempts: 0,
})

export const EndpointTest = envelopeOf(
  Type.Object({
    id: Type.String({ description: 'The webhook-id that was sent' }),
    delivered: Type.Boolean({ description: 'Whether the receiver answered with 2xx' }),
    ...response,
  }),
  'WebhookEndpointTest',
  { id: exampleDelivery.id, delivered: false, response_code: 401, response_text: 'The signature is wrong.' },
)
