import { Type } from '@sinclair/typebox'
import { cursorPageOf } from '../lib/cursor_page.ts'
import { nullable } from '../lib/typebox.ts'
import { SignalValue } from './schema.ts'

export const RecordedSignal = Type.Object(
  {
    id: Type.Integer({ format: 'int64', description: 'Identifier of the signal' }),
    value: SignalValue,
    metadata: nullable(Type.Object({}, { additionalProperties: true }), 'As it was sent; null for none'),
    created_at: Type.String({ format: 'date-time', description: 'ISO 8601 UTC timestamp' }),
  },
  { title: 'RecordedSignal' },
)

export const SignalList = cursorPageOf(RecordedSignal, {
  id: 7,
  value: 'negative',
  metadata: { model: 'gpt-5', session: 'a81c' },
  created_at: '2026-11-14T23:35:00.000Z',
})

/** The lines of an export as examples. */
export const exportExamples = {
  'application/x-ndjson':
    '{"id":7,"prompt":"pmt_greeting","value":"negative","metadata":{"model":"gpt-5"},"created_at":"2026-11-14T23:35:00.000Z"}\n',
  'text/csv':
    'id,prompt,value,created_at,metadata\r\n7,pmt_greeting,negative,2026-11-14T23:35:00.000Z,"{""model"": ""gpt-5""}"\r\n',
}
