import { Type } from '@sinclair/typebox'
import { SignalValue } from './schema.ts'

/** This schema is for the documentation alone. */
export const ExportQuery = Type.Object({
  format: Type.Union([Type.Literal('ndjson'), Type.Literal('csv')], {
    default: 'ndjson',
    description: 'A JSON object for each signal, one a line; or a table with a heading',
  }),
  value: SignalValue,
  since: Type.String({ description: 'Signals from this time on; a date alone is its first instant, UTC' }),
  until: Type.String({ description: 'Signals before this time' }),
  after: Type.Integer({
    format: 'int64',
    description: 'Goes on with an export that was cut: the id in the last line that was received whole',
  }),
})

/** The lines of an export as examples. */
export const exportExamples = {
  'application/x-ndjson':
    '{"id":7,"prompt":"pmt_greeting","value":"negative","metadata":{"model":"gpt-5"},"created_at":"2026-11-14T23:35:00.000Z"}\n',
  'text/csv':
    'id,prompt,value,created_at,metadata\r\n7,pmt_greeting,negative,2026-11-14T23:35:00.000Z,"{""model"": ""gpt-5""}"\r\n',
}
