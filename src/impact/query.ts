import { type EntryFilters, parseEntryFilters, writeEntryFilters } from '../history/query.ts'
import { liveActions } from '../history/schema.ts'
import { type PageRequest, parsePageRequest } from '../lib/cursor_page.ts'
import { type NumberedPage, parseNumberedPage } from '../lib/numbered_page.ts'
import { oneOf, parseId, QueryParser } from '../lib/query_parser.ts'
import { parseSearch } from '../prompts/query.ts'
import { defaultMargin, type Sort, sorts } from './schema.ts'

/** The part of the changes of a prompt that a caller requests: a page, or two to be compared. */
export type ImpactQuery = NumberedPage & EntryFilters & { margin: number; pair: Pair | null }

/** The ids of two history entries. */
export type Pair = { base: number; head: number }

/** What a margin must be. Rates have six digits, and so has what they are compared with. */
export const expectedMargin = 'a number from 0 to less than 1, as 0.05'
const expectedId = 'the id of a history entry'

/** Parses the query. A parameter that makes no sense is rejected by its name, but for a page and a limit. */
export function parseImpactQuery(given: URLSearchParams): ImpactQuery {
  const parser = new QueryParser(given)
  const margin = parser.parse('margin', parseMargin, expectedMargin) ?? defaultMargin
  const base = parser.parse('base', parseId, expectedId)
  const head = parser.parse('head', parseId, expectedId)
  if (head !== null && !given.has('base')) parser.addProblem('base', 'must be given, as head is')
  if (base !== null && !given.has('head')) parser.addProblem('head', 'must be given, as base is')
  if (base !== null && base === head) parser.addProblem('head', 'must be another change than base')
  const filters = parseEntryFilters(given, parser, liveActions)
  const pair = base !== null && head !== null ? { base, head } : null
  for (const name of pair ? Object.keys(writeEntryFilters(filters)) : []) {
    parser.addProblem(name, 'must not be given with base and head')
  }
  parser.requireValid()
  // Two changes are one page.
  return { ...parseNumberedPage(pair ? new URLSearchParams() : given), ...filters, margin, pair }
}

/** The prompts that a caller wants to see with what their live changes did. */
export type OverviewQuery = { margin: number; search: string | null; sort: Sort | null; page: PageRequest }

export function parseOverviewQuery(given: URLSearchParams): OverviewQuery {
  const parser = new QueryParser(given)
  const margin = parser.parse('margin', parseMargin, expectedMargin) ?? defaultMargin
  const search = parseSearch(parser)
  const sort = parser.parse('sort', oneOf(sorts), `one of ${sorts.join(', ')}`)
  parser.requireValid()
  return { margin, search, sort, page: parsePageRequest(given) }
}

const parseMargin = (text: string): number | undefined => (/^(0|0?\.\d{1,6})$/.test(text) ? Number(text) : undefined)
