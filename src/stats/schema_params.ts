import { Type } from '@sinclair/typebox'
import { choiceParam, defineParams, param, timeParam } from '../lib/params.ts'
import { parseMetadataField } from '../signals/schema_params.ts'

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
