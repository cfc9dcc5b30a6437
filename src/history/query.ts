import { defaultPageSize } from '../lib/cursor_page.ts'
import { type NumberedPage, parseNumberedPage } from '../lib/numbered_page.ts'
import { QueryParser } from '../lib/query_parser.ts'
import { expectedTime, parseTime } from '../lib/times.ts'
import { type Action, actions } from './schema.ts'

/** What narrows down the entries of a history; null for all. */
export type EntryFilters = {
  actions: Action[] | null
  branch: string | null
  since: Date | null
  /** The last instant that is listed. */
  until: Date | null
}

/** The part of a history that a caller requests. */
export type HistoryQuery = NumberedPage &
  EntryFilters & {
    /** The same text for all queries that ask for the same, however they are written. */
    key: string
  }

const noFilters = { actions: null, branch: null, since: null, until: null }

/** Matches a page and a limit alone, in this order. This shortcut parses them in 0.2 µs instead of 1.4. */
const plainQuery = /^(?:\?(?:page=([1-9]\d{0,8}))?(?:&?limit=([1-9]\d?|100))?)?$/

/**
 * Parses the part of a URL from the question mark on. A page or a limit that makes no sense gets its default, because
 * the interface knows no error for them. A filter that makes no sense is rejected: ignoring it would widen the result.
 */
export function parseQuery(search: string): HistoryQuery {
  const plain = plainQuery.exec(search)
  if (plain) {
    const [, page = 1, limit = defaultPageSize] = plain
    return { ...noFilters, page: BigInt(page), limit: Number(limit), key: `${page}&${limit}` }
  }

  const given = new URLSearchParams(search)
  const parser = new QueryParser(given)
  const query = { ...parseNumberedPage(given), ...parseEntryFilters(given, parser, actions) }
  parser.requireValid()
  return { ...query, key: keyOf(query) }
}

/** Parses the filters of a list that has entries of these actions. */
export const parseEntryFilters = (given: URLSearchParams, parser: QueryParser, possible: Action[]): EntryFilters => ({
  actions: parseActions(given.getAll('action'), parser, possible),
  branch: parser.parse('branch', parseBranch, 'the name of a branch'),
  since: parser.parse('since', parseTime, expectedTime),
  until: parser.parse('until', parseTime, expectedTime),
})

/** The parameter may be repeated, as clients do that are generated from the document, or hold a list with commas. */
function parseActions(values: string[], parser: QueryParser, possible: Action[]): Action[] | null {
  const given = values.flatMap((value) => value.split(','))
  if (!given.every((value) => possible.includes(value as Action))) {
    parser.addProblem('action', `must be one or more of ${possible.join(', ')}`)
  }
  const wanted = possible.filter((action) => given.includes(action))
  return wanted.length === 0 || wanted.length === possible.length ? null : wanted
}

/** Postgres has no text with a NUL in it, so no branch has such a name. */
const parseBranch = (text: string): string | undefined => (text === '' || text.includes('\0') ? undefined : text)

function keyOf({ page, limit, actions, branch, since, until }: Omit<HistoryQuery, 'key'>): string {
  const filters = [actions, since?.getTime(), until?.getTime(), branch]
  return [page, limit, ...(filters.some((filter) => filter != null) ? filters : [])].join('&')
}

/** The address of another page of the same query; relative when the base is empty. */
export function addressOfPage(baseUrl: string, prompt: string, query: HistoryQuery, page: bigint): string {
  const written = new URLSearchParams({ page: String(page), limit: String(query.limit), ...writeEntryFilters(query) })
  return `${baseUrl}/api/v1/prompts/${prompt}/history?${written}`
}

/** The filters as parameters of a query. */
export const writeEntryFilters = ({ actions, branch, since, until }: EntryFilters): Record<string, string> => ({
  ...(actions && { action: actions.join(',') }),
  ...(branch !== null && { branch }),
  ...(since && { since: since.toISOString() }),
  ...(until && { until: until.toISOString() }),
})
