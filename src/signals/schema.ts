import { type Static, Type } from '@sinclair/typebox'
import { cursorPageOf } from '../lib/cursor_page.ts'
import { envelopeOf, literals, nullable } from '../lib/typebox.ts'
import { PromptPath } from '../prompts/schema.ts'

export const SignalValue = literals(['positive', 'negative'], { description: 'The feedback itself' })

export const NewSignal = Type.Object(
  {
    value: SignalValue,
    metadata: Type.Optional(
      Type.Object(
        {},
        {
          additionalProperties: true,
          description: 'Any JSON object, stored as sent: at most 16 KiB, nested at most 32 deep',
        },
      ),
    ),
  },
  { title: 'NewSignal', examples: [{ value: 'positive', metadata: { session: 'a81c', rating: 5 } }] },
)

export type NewSignal = Static<typeof NewSignal>

const id = Type.Integer({ format: 'int64', description: 'Identifier of the signal' })
const createdAt = Type.String({ format: 'date-time', description: 'ISO 8601 UTC timestamp' })

export const CreatedSignal = envelopeOf(
  Type.Object({ id, value: SignalValue, created_at: createdAt }, { title: 'Signal' }),
  'CreatedSignal',
  { id: 1, value: 'positive', created_at: '2026-11-14T23:35:00.000Z' },
)

export type CreatedSignal = Static<typeof CreatedSignal>

export const SignalPath = Type.Object({
  ...PromptPath.properties,
  signal_id: Type.Integer({ format: 'int64', description: 'Identifier of the signal', examples: [7] }),
})

export const ErasedSignal = envelopeOf(Type.Object({ id }), 'ErasedSignal', { id: 7 })

const RecordedSignal = Type.Object(
  {
    id,
    value: SignalValue,
    metadata: nullable(Type.Object({}, { additionalProperties: true }), 'As it was sent, or null'),
    created_at: createdAt,
  },
  { title: 'RecordedSignal' },
)

export const SignalList = cursorPageOf(RecordedSignal, {
  id: 7,
  value: 'negative',
  metadata: { model: 'gpt-5', session: 'a81c' },
  created_at: '2026-11-14T23:35:00.000Z',
})

/** An example line of each export format. */
export const exportExamples = {
  'application/x-ndjson':
    '{"id":7,"prompt":"pmt_greeting","value":"negative","metadata":{"model":"gpt-5"},"created_at":"2026-11-14T23:35:00.000Z"}\n',
  'text/csv':
    'id,prompt,value,created_at,metadata\r\n7,pmt_greeting,negative,2026-11-14T23:35:00.000Z,"{""model"": ""gpt-5""}"\r\n',
}
