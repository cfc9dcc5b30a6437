import { type Static, Type } from '@sinclair/typebox'
import { idempotencyKeyType } from '../lib/idempotency_key.ts'
import { envelopeOf, literals } from '../lib/typebox.ts'
import { NewSignal } from './schema.ts'

export const maxSignals = 1_000

export const BatchSignal = Type.Object(
  {
    ...NewSignal.properties,
    created_at: Type.Optional(
      Type.String({
        format: 'date-time',
        description:
          'When the feedback was given, in ISO 8601 with a zone; now by default. Must be within the current calendar month, ' +
          'UTC, and not in the future. Up to a minute ahead is recorded as now.',
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

const batchSize = { minItems: 1, maxItems: maxSignals }

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
            idempotency_key: 'a81c-1',
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
    message: Type.String({ description: 'What went wrong and what to do about it' }),
    details: Type.Optional(
      Type.Array(
        Type.Object({
          path: Type.String({ description: 'JSON Pointer into this signal' }),
          message: Type.String({ description: 'What the value there must be' }),
        }),
      ),
    ),
    limited_by: Type.Optional(
      Type.String({ description: 'The limit that was reached: organisation_month or key_month' }),
    ),
    limit: Type.Optional(Type.Integer({ description: 'The monthly signal limit' })),
    used: Type.Optional(Type.Integer({ description: 'Signals recorded in the current month' })),
    resets_at: Type.Optional(Type.String({ format: 'date-time', description: 'When the counter resets' })),
    request_id: Type.String({ description: 'The same as the X-Request-Id header' }),
  },
  { title: 'BatchError', description: 'The error that this signal would get in a single request' },
)

export const RecordedBatch = envelopeOf(
  Type.Array(
    Type.Object(
      {
        status: Type.Integer({
          enum: [201, 422, 429],
          description: 'The status that this signal would get in a single request',
        }),
        id: Type.Optional(Type.Integer({ format: 'int64', description: 'Identifier of the signal, with 201' })),
        created_at: Type.Optional(
          Type.String({ format: 'date-time', description: 'The time it is recorded with, with 201' }),
        ),
        replayed: Type.Optional(
          Type.Literal(true, {
            description: 'Present when the signal was recorded before with the same key',
          }),
        ),
        error: Type.Optional(BatchError),
      },
      { title: 'BatchResult' },
    ),
    { description: 'One for each signal, in the order they were sent' },
  ),
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
