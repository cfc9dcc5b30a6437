import { type Static, Type } from '@sinclair/typebox'
import { cursorPageOf } from '../lib/cursor_page.ts'
import { idempotencyKeyType } from '../lib/idempotency_key.ts'
import { envelopeOf, literals, nullable, printable } from '../lib/typebox.ts'
import { PromptPath } from '../prompts/schema.ts'

const SignalValue = literals(['positive', 'negative'], { description: 'The feedback itself' })

export const Subject = Type.String({
  ...printable(255),
  description: 'What it is about, such as an answer. For 90 days, a later signal with the same subject replaces it',
})

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
    subject: Type.Optional(Subject),
  },
  { title: 'NewSignal', examples: [{ value: 'positive', metadata: { session: 'a81c', rating: 5 } }] },
)

export type NewSignal = Static<typeof NewSignal>

const id = Type.Integer({ format: 'int64', description: 'Identifier of the signal' })
const createdAt = Type.String({ format: 'date-time', description: 'ISO 8601 UTC timestamp' })
const replaced = Type.Optional(Type.Literal(true, { description: 'With 200: it replaced the signal with its subject' }))

export const CreatedSignal = envelopeOf(
  Type.Object({ id, value: SignalValue, created_at: createdAt, replaced }, { title: 'Signal' }),
  'CreatedSignal',
  { id: 1, value: 'positive', created_at: '2026-11-14T23:35:00.000Z' },
)

export type CreatedSignal = Static<typeof CreatedSignal>

export const SignalPath = Type.Object({
  ...PromptPath.properties,
  signal_id: Type.Integer({ format: 'int64', description: 'Identifier of the signal', examples: [7] }),
})

export const ErasedSignals = envelopeOf(
  Type.Object({
    id: Type.Optional(id),
    erased: Type.Optional(Type.Integer({ description: 'How many signals were erased by their metadata' })),
    next_cursor: Type.Optional(nullable(Type.String(), 'If signals are left to be examined; else null')),
  }),
  'ErasedSignals',
  { id: 7 },
)

export const ErasedSignal = envelopeOf(Type.Object({ id }), 'ErasedSignal', { id: 7 })

const RecordedSignal = Type.Object(
  {
    id,
    value: SignalValue,
    metadata: nullable(Type.Object({}, { additionalProperties: true }), 'As it was sent, or null'),
    created_at: createdAt,
    subject: Type.Optional(Type.String({ description: 'As it was sent, if it was' })),
  },
  { title: 'RecordedSignal' },
)

export const SignalList = cursorPageOf(RecordedSignal, {
  id: 7,
  value: 'negative',
  metadata: { model: 'gpt-5', session: 'a81c' },
  created_at: '2026-11-14T23:35:00.000Z',
})

/** What an import reads of an exported line. */
export const ImportedSignal = Type.Object({
  value: SignalValue,
  metadata: Type.Optional(nullable(Type.Object({}), 'As it was sent, or null')),
  created_at: Type.String(),
  prompt: Type.Optional(Type.String()),
  subject: Type.Optional(Subject),
})

export type ImportedSignal = Static<typeof ImportedSignal>

/** A line of any file whose columns are named. */
export const ImportedRow = Type.Pick(ImportedSignal, ['metadata'])

/** An example line of each export format. */
export const exportExamples = {
  'application/x-ndjson':
    '{"id":7,"prompt":"pmt_greeting","value":"negative","metadata":{"model":"gpt-5"},"created_at":"2026-11-14T23:35:00.000Z"}\n',
  'text/csv':
    'id,prompt,value,created_at,metadata,subject\r\n7,pmt_greeting,negative,2026-11-14T23:35:00.000Z,"{""model"": ""gpt-5""}",\r\n',
}

export const BatchSignal = Type.Object(
  {
    ...NewSignal.properties,
    created_at: Type.Optional(
      Type.String({
        format: 'date-time',
        description:
          'When the feedback was given, in ISO 8601 with a zone; now by default. Must be within the current calendar month, ' +
          'UTC, or in its first 15 minutes the one before, and not in the future. Up to a minute ahead is recorded as now.',
      }),
    ),
    idempotency_key: Type.Optional(
      idempotencyKeyType(
        'Makes a retry safe, like the Idempotency-Key of a single signal. Both share one set of keys.',
      ),
    ),
  },
  { title: 'BatchSignal' },
)

export type BatchSignal = Static<typeof BatchSignal>

const batchSize = { minItems: 1, maxItems: 1_000 }

/** Each signal is validated separately, so that an invalid one does not fail the others. */
export const SignalBatch = Type.Object({ signals: Type.Array(Type.Unknown(), batchSize) })

/** The same batch with its signals, for the OpenAPI document. */
export const NewSignalBatch = Type.Object(
  { signals: Type.Array(BatchSignal, batchSize) },
  {
    title: 'NewSignalBatch',
    examples: [
      {
        signals: [
          {
            value: 'positive',
            metadata: { session: 'a81c', rating: 5 },
            created_at: '2026-11-14T23:35:00.000Z',
            idempotency_key: 'a81c-2',
          },
          { value: 'negative' },
        ],
      },
    ],
  },
)

const BatchError = Type.Object(
  {
    code: literals(['validation_error', 'rate_limited']),
    message: Type.String(),
    details: Type.Optional(Type.Array(Type.Object({ path: Type.String(), message: Type.String() }))),
    limited_by: Type.Optional(Type.String()),
    limit: Type.Optional(Type.Integer()),
    used: Type.Optional(Type.Integer()),
    resets_at: Type.Optional(Type.String({ format: 'date-time' })),
    request_id: Type.String(),
  },
  {
    title: 'BatchError',
    description:
      'The error that this signal would get in a single request. Each path is a JSON Pointer into this signal',
  },
)

const BatchResult = Type.Object(
  {
    status: Type.Integer({
      enum: [200, 201, 422, 429],
      description: 'The status that it would get in a single request',
    }),
    id: Type.Optional(Type.Integer({ format: 'int64', description: 'Identifier of the signal, with 200 or 201' })),
    created_at: Type.Optional(Type.String({ format: 'date-time', description: 'Its time, with 200 or 201' })),
    replayed: Type.Optional(Type.Literal(true, { description: 'Present if it was recorded before with the same key' })),
    replaced,
    error: Type.Optional(BatchError),
  },
  { title: 'BatchResult' },
)

export const RecordedBatch = envelopeOf(
  Type.Array(BatchResult, { description: 'One for each signal, in the order they were sent' }),
  'RecordedBatch',
  [
    { status: 201, id: 1, created_at: '2026-11-14T23:35:00.000Z' },
    {
      status: 422,
      error: {
        code: 'validation_error',
        message: 'The signal is not valid.',
        details: [{ path: '/value', message: 'must be positive or negative' }],
        request_id: 'f2a7f1a0-6d0b-4c6e-9a38-1f5d3c1b7e42',
      },
    },
  ],
)

export type RecordedBatch = Static<typeof RecordedBatch>
