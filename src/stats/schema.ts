import { type Static, type TObject, Type } from '@sinclair/typebox'
import { choiceParam, defineParams, param, timeParam } from '../lib/params.ts'
import { nullable } from '../lib/typebox.ts'

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
    signals: Type.Integer({ description: 'How many signals were read: the newest of the range' }),
    overlapping: Type.Boolean({
      description:
        'Whether signals count for several values, because the field has lists: each of the first 20 elements counts',
    }),
    complete: Type.Boolean({ description: 'Whether all signals of the range were read' }),
    values: Type.Array(
      Type.Object({ value: Type.String({ description: 'A string unchanged, anything else as JSON' }), ...counts }),
      { description: 'The 20 values with the most signals, the largest first' },
    ),
    rest: Type.Object(
      { values: Type.Integer({ description: 'How many other values there are' }), ...counts },
      { description: 'All other values together' },
    ),
    none: Type.Object(counts, { description: 'Signals without this metadata field' }),
  },
  { title: 'MetadataSplit', description: 'Only with the parameter by' },
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
            description: 'Start of the interval. since and until cut the first and the last interval.',
          }),
          ...counts,
        },
        { title: 'StatsPoint' },
      ),
      { description: 'One point per interval, oldest first, including intervals without signals' },
    ),
    totals: Type.Object(counts, { description: 'Over the whole range' }),
    range: Type.Object(
      {
        interval: Type.String(),
        tz: Type.String(),
        since: Type.String({ format: 'date-time' }),
        until: Type.String({ format: 'date-time' }),
      },
      { description: 'The range, with defaults filled in' },
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

const intervals = ['hour', 'day', 'week', 'month'] as const

export type Interval = (typeof intervals)[number]

/** Matches names of the IANA database. Temporal also takes offsets such as +05:30; the interface does not. */
const zoneName = /^[A-Za-z][A-Za-z0-9_+-]{0,31}(\/[A-Za-z0-9_+-]{1,32}){0,2}$/

/** Undefined for a name that the runtime does not know. */
export function parseZone(name: string): string | undefined {
  if (!zoneName.test(name)) return undefined
  try {
    return new Temporal.ZonedDateTime(0n, name) && name
  } catch {
    return undefined
  }
}

export const metadataPrefix = 'metadata.'

/** Postgres stores no NUL and no lone surrogate, so no metadata contains them. */
export const parseStorable = (text: string): string | undefined =>
  text.includes('\0') || !text.isWellFormed() ? undefined : text

/** The name of a top-level field, written as `metadata.FIELD`. */
export const parseMetadataField = (text: string): string | undefined =>
  text.startsWith(metadataPrefix) && text.length > metadataPrefix.length
    ? parseStorable(text.slice(metadataPrefix.length))
    : undefined

export const statsParams = defineParams({
  interval: choiceParam(intervals, 'Length of a point. Weeks begin on Monday.', 'day'),
  since: timeParam(
    'Counts signals from this ISO 8601 time on. Default: the last 24 hours, 30 days, 12 weeks or 12 months.',
  ),
  until: timeParam('Counts signals before this ISO 8601 time. Default: the end of the current interval.'),
  tz: param(
    Type.String({ description: 'The IANA time zone in which intervals begin, such as Europe/London.' }),
    parseZone,
    'the name of a time zone, such as Europe/London',
    'UTC',
  ),
  by: param(
    Type.String({
      pattern: '^metadata\\..',
      description:
        'Also splits the newest 10,000 signals of the range by the values of a top-level metadata field, such as ' +
        'metadata.model.',
    }),
    parseMetadataField,
    'metadata. and the name of a top-level field, such as metadata.model',
  ),
})
