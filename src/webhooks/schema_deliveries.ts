import { Type } from '@sinclair/typebox'
import { cursorPageOf } from '../lib/cursor_page.ts'
import { envelopeOf, literals, nullable, partlyVisible, type Row } from '../lib/typebox.ts'
import { EndpointPath } from './schema.ts'

const time = Type.String({ format: 'date-time' })

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

const example = {
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
  event_id: Type.String({ description: 'Public id of the event', examples: [example.id] }),
})

export const DeliveryList = cursorPageOf(Delivery, example)

/** What sending again shows to a caller that may not read deliveries. */
export const redeliveryAlwaysShows = ['id', 'status', 'next_attempt_at']

export const Redelivery = envelopeOf(partlyVisible(Delivery, redeliveryAlwaysShows), 'WebhookRedelivery', {
  ...example,
  attempts: 0,
})

export const EndpointTest = envelopeOf(
  Type.Object({
    id: Type.String({ description: 'The webhook-id that was sent' }),
    delivered: Type.Boolean({ description: 'Whether the receiver answered with 2xx' }),
    ...response,
  }),
  'WebhookEndpointTest',
  { id: example.id, delivered: false, response_code: 401, response_text: 'The signature is wrong.' },
)
