import { type Static, Type } from '@sinclair/typebox'
import { envelopeOf, literals } from '../lib/typebox.ts'
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
          description:
            "Any JSON object for the caller's own tracking, kept as sent: at most 16 KiB, nested at most 32 deep",
        },
      ),
    ),
  },
  { title: 'NewSignal', examples: [{ value: 'positive', metadata: { session: 'a81c', rating: 5 } }] },
)

export type NewSignal = Static<typeof NewSignal>

const id = Type.Integer({ format: 'int64', description: 'Identifier of the signal' })

export const CreatedSignal = envelopeOf(
  Type.Object(
    {
      id,
      value: SignalValue,
      created_at: Type.String({ format: 'date-time', description: 'ISO 8601 UTC timestamp' }),
    },
    { title: 'Signal' },
  ),
  'CreatedSignal',
  { id: 1, value: 'positive', created_at: '2026-11-14T23:35:00.000Z' },
)

export type CreatedSignal = Static<typeof CreatedSignal>

export const SignalPath = Type.Object({
  ...PromptPath.properties,
  signal_id: Type.Integer({ format: 'int64', description: 'Identifier of the signal', examples: [7] }),
})

export const ErasedSignal = envelopeOf(Type.Object({ id }), 'ErasedSignal', { id: 7 })
