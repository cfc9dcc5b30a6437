import { defaultPageSize } from '../lib/params.ts'
import { type HistoryQuery, historyParams, writeEntryFilters } from './schema_params.ts'

/** A query with its cache key, which is the same for every spelling of the same query. */
export type KeyedHistoryQuery = HistoryQuery & { key: string }

const noFilters = { action: null, branch: null, since: null, until: null }

/** Only a page and a limit, in this order: most clients send nothing else, so this skips the general parser. */
const plainQuery = /^(?:\?(?:page=([1-9]\d{0,8}))?(?:&?limit=([1-9]\d?|100))?)?$/

/** Parses the part of a URL from the question mark on. */
export function parseHistoryQuery(search: string): KeyedHistoryQuery {
  const [isPlain, page = 1, limit = defaultPageSize] = plainQuery.exec(search) ?? []
  const query =
    isPlain === undefined
      ? historyParams.parse(new URLSearchParams(search))
      : { ...noFilters, page: Number(page), limit: Number(limit) }
  return { ...query, key: writeHistoryQuery(query, query.page) }
}

/** Returns the URL of another page of the same query; relative when the base is empty. */
export const addressOfPage = (baseUrl: string, prompt: string, query: HistoryQuery, page: number): string =>
  `${baseUrl}/api/v1/prompts/${prompt}/history?${writeHistoryQuery(query, page)}`

function writeHistoryQuery(query: HistoryQuery, page: number): string {
  const written = `page=${page}&limit=${query.limit}`
  const filters = new URLSearchParams(writeEntryFilters(query))
  return filters.size === 0 ? written : `${written}&${filters}`
}
