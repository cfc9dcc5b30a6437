import { invalid } from '../errors.ts'
import { type PageRequest, parsePageRequest } from '../lib/cursor_page.ts'
import { oneOf, QueryParser } from '../lib/query_parser.ts'
import { expectedTime, parseTime } from '../lib/times.ts'
import { type Interval, intervals, isZone, nextStart, startBefore, startsBetween } from './intervals.ts'
import type { SignalFilter } from './store_reads.ts'

/** The signals that a caller asks to list. */
export type SignalQuery = { filter: SignalFilter; page: PageRequest }

/** The span of time and the metadata field that a caller wants counted. */
export type StatsQuery = {
  interval: Interval
  zone: string
  since: Date
  /** The first instant that is not counted. */
  until: Date
  /** The starts of the intervals; the first may be before `since`. */
  starts: Date[]
  /** A top-level field of the metadata to split by. */
  by: string | null
}

const maxPoints = 1_000
/** How many fields of the metadata one request may filter by. */
const maxMetadataFilters = 5
const prefix = 'metadata.'

/** How many intervals there are without a `since`. */
const defaultPoints: Record<Interval, number> = { hour: 24, day: 30, week: 12, month: 12 }

/** Signals begin with the service; zones have no better rules for earlier times anyway. */
const earliest = Date.UTC(1970, 0, 2)

export function parseSignalQuery(given: URLSearchParams): SignalQuery {
  const parser = new QueryParser(given)
  const filter = { ...parseValueAndRange(parser), metadata: parseMetadataFilters(given, parser) }
  parser.requireValid()
  return { filter, page: parsePageRequest(given) }
}

/** Parses the filters that lists and exports have in common. */
export function parseValueAndRange(parser: QueryParser) {
  const value = parser.parse('value', oneOf(['positive', 'negative']), 'positive or negative')
  const since = parser.parse('since', parseTime, expectedTime)
  const until = parser.parse('until', parseTime, expectedTime)
  if (since && until) requireOrder(parser, since, until)
  return { value, since, until }
}

/** The filters, sorted by key so that a cursor does not depend on the order in which the filters are written. */
function parseMetadataFilters(given: URLSearchParams, parser: QueryParser): [string, string][] {
  const names = [...new Set(given.keys())].filter((name) => name.startsWith(prefix)).sort()
  if (names.length > maxMetadataFilters) {
    parser.addProblem(
      names[maxMetadataFilters] as string,
      `must be one of at most ${maxMetadataFilters} metadata filters`,
    )
  }
  return names.flatMap((name) => {
    const key = parseKey(name)
    if (key === undefined) parser.addProblem(name, expectedKey)
    const text = parser.parse(name, parseText, 'a text')
    return key === undefined || text === null ? [] : [[key, text]]
  })
}

const expectedKey = 'must be metadata. and the name of a top-level field'

/** Postgres has no text with a NUL or half of a surrogate pair in it, so no metadata has one. */
const parseText = (text: string): string | undefined => (text.includes('\0') || !text.isWellFormed() ? undefined : text)

function parseKey(text: string): string | undefined {
  return text.startsWith(prefix) && text.length > prefix.length ? parseText(text.slice(prefix.length)) : undefined
}

function requireOrder(parser: QueryParser, since: Date, until: Date): void {
  if (since >= until) parser.addProblem('since', 'must be before until')
}

/** Parses what is to be counted. Without `until` it ends with the interval that is under way. */
export function parseStatsQuery(given: URLSearchParams, now: Date): StatsQuery {
  const parser = new QueryParser(given)
  const interval = parser.parse('interval', oneOf(intervals), 'hour, day, week or month') ?? 'day'
  const expectedZone = 'the name of a time zone, as Europe/London'
  const zone = parser.parse('tz', (text) => (isZone(text) ? text : undefined), expectedZone) ?? 'UTC'
  const by = parser.parse('by', parseKey, 'metadata. and the name of a top-level field, as metadata.model')
  const until = parser.parse('until', parseTime, expectedTime) ?? nextStart(interval, zone, now)
  const since =
    parser.parse('since', parseTime, expectedTime) ?? startBefore(interval, zone, until, defaultPoints[interval])
  requireOrder(parser, since, until)
  if (since.getTime() < earliest) parser.addProblem('since', 'must be after 1 January 1970')
  parser.requireValid()
  const starts = startsBetween(interval, zone, since, until, maxPoints + 1)
  if (starts.length > maxPoints) throw tooManyPoints(interval)
  return { interval, zone, since, until, starts, by }
}

const tooManyPoints = (interval: Interval) =>
  invalid(`There are more than ${maxPoints} points. Ask for a shorter range, or a longer interval.`, [
    { path: 'interval', message: `must be longer than ${interval} for this range, which has more than ${maxPoints}` },
  ])
