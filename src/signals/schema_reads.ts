import { type Static, type TObject, Type } from '@sinclair/typebox'
import { cursorPageOf, PageQuery } from '../lib/cursor_page.ts'
import { envelopeOf, literals, nullable } from '../lib/typebox.ts'
import { SignalValue } from './schema.ts'

/** This schema is for the documentation alone, as are the other queries; they are parsed from their text. */
export const SignalQuery = Type.Object({
  ...PageQuery.properties,
  value: literals(['positive', 'negative'], { description: 'Only signals of this value.' }),
  since: Type.String({
    format: 'date-time',
    description: 'Only signals from this ISO 8601 time on; a date alone is its first instant, UTC.',
  }),
  until: Type.String({
    format: 'date-time',
    description: 'Only signals before this ISO 8601 time; a date alone is its first instant, UTC.',
  }),
  'metadata.model': Type.String({
    description:
      'Only signals whose metadata has this text in the top-level field `model`, or in any other field that is named in ' +
      'its place; up to five of them. A number, true, false or null is written as in JSON.',
  }),
})

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

export const StatsQuery = Type.Object({
  interval: Type.Union([Type.Literal('hour'), Type.Literal('day'), Type.Literal('week'), Type.Literal('month')], {
    default: 'day',
    description: 'The length of a point. Weeks begin on Monday.',
  }),
  since: Type.String({
    format: 'date-time',
    description:
      'Counts signals from this ISO 8601 time on; a date alone is its first instant, UTC. Left out, there are 24 hours, ' +
      '30 days, 12 weeks or 12 months.',
  }),
  until: Type.String({
    format: 'date-time',
    description: 'Counts signals before this ISO 8601 time. Left out, it is the end of the interval that is under way.',
  }),
  tz: Type.String({
    default: 'UTC',
    description: 'The IANA time zone whose clocks say when an interval begins, as Europe/London.',
  }),
  by: Type.String({
    pattern: '^metadata\\..',
    description:
      'Also splits the newest 10,000 signals of the range by the values of a top-level metadata field, as metadata.model.',
  }),
})

const counts = {
  positive: Type.Integer(),
  negative: Type.Integer(),
  total: Type.Integer(),
  rate: nullable(Type.Number(), 'The share of positive signals, to four digits; null where there are none'),
}

export type SignalCounts = Static<TObject<typeof counts>>

const MetadataSplit = Type.Object(
  {
    key: Type.String({ description: 'The metadata field' }),
    signals: Type.Integer({ description: 'How many signals were looked at: the newest of the range' }),
    complete: Type.Boolean({ description: 'Whether these are all signals of the range' }),
    values: Type.Array(
      Type.Object({ value: Type.String({ description: 'A text as it is, anything else as JSON' }), ...counts }),
      { description: 'The 20 values of most signals, the most first' },
    ),
    rest: Type.Object(
      { values: Type.Integer({ description: 'How many other values there are' }), ...counts },
      { description: 'All other values together' },
    ),
    none: Type.Object(counts, { description: 'The signals whose metadata has no such field' }),
  },
  { title: 'MetadataSplit', description: 'There when it was asked for' },
)

export type MetadataSplit = Static<typeof MetadataSplit>

const exampleCounts = { positive: 3, negative: 1, total: 4, rate: 0.75 }

export const SignalStats = Type.Object(
  {
    data: Type.Array(
      Type.Object(
        {
          start: Type.String({
            format: 'date-time',
            description: 'When the interval begins. The first and the last are cut by since and until.',
          }),
          ...counts,
        },
        { title: 'StatsPoint' },
      ),
      { description: 'One point for each interval, oldest first, also where there are no signals' },
    ),
    totals: Type.Object(counts, { description: 'Over the whole range' }),
    range: Type.Object(
      {
        interval: Type.String(),
        tz: Type.String(),
        since: Type.String({ format: 'date-time' }),
        until: Type.String({ format: 'date-time' }),
      },
      { description: 'What was counted, with what was left out of the query filled in' },
    ),
    by: Type.Optional(MetadataSplit),
  },
  {
    title: 'SignalStats',
    examples: [
      {
        data: [
          { start: '2026-11-13T00:00:00.000Z', positive: 0, negative: 0, total: 0, rate: null },
          { start: '2026-11-14T00:00:00.000Z', ...exampleCounts },
        ],
        totals: exampleCounts,
        range: {
          interval: 'day',
          tz: 'Europe/London',
          since: '2026-11-13T00:00:00.000Z',
          until: '2026-11-15T00:00:00.000Z',
        },
      },
    ],
  },
)

export type SignalStats = Static<typeof SignalStats>

export const UsageReport = envelopeOf(
  Type.Object(
    {
      plan: Type.String(),
      month: Type.String({ pattern: '^\\d{4}-\\d{2}$', description: 'The current month, UTC' }),
      limit: Type.Integer({ description: 'The monthly signal limit' }),
      used: Type.Integer({ description: 'Signals recorded in the month; erasing one does not lower it' }),
      remaining: Type.Integer(),
      resets_at: Type.String({ format: 'date-time', description: 'When the counter resets: the next month, UTC' }),
      days: Type.Array(
        Type.Object({ date: Type.String({ format: 'date' }), total: Type.Integer() }, { title: 'UsageDay' }),
        { description: 'From the first of the month to today, UTC: the signals that there are' },
      ),
      prompts: Type.Array(Type.Object({ prompt: Type.String(), total: Type.Integer() }, { title: 'UsagePrompt' }), {
        description: 'The prompts with signals this month, the 100 with the most, these first',
      }),
      other_prompts: Type.Object(
        { prompts: Type.Integer({ description: 'How many prompts are not listed' }), total: Type.Integer() },
        { description: 'All other prompts together' },
      ),
    },
    { title: 'UsageData' },
  ),
  'Usage',
  {
    plan: 'team',
    month: '2026-11',
    limit: 10_000,
    used: 321,
    remaining: 9_679,
    resets_at: '2026-12-01T00:00:00.000Z',
    days: [
      { date: '2026-11-01', total: 12 },
      { date: '2026-11-02', total: 309 },
    ],
    prompts: [{ prompt: 'pmt_greeting', total: 321 }],
    other_prompts: { prompts: 0, total: 0 },
  },
)

export type UsageReport = Static<typeof UsageReport>
