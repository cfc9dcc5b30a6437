import { type EntryFilters, readEntryFilters, writeEntryFilters } from '../history/query.ts'
import { liveActions } from '../history/schema.ts'
import { type PageRequest, readPageRequest } from '../lib/cursor_page.ts'
import { type NumberedPage, readNumberedPage } from '../lib/numbered_page.ts'
import { createQueryReader } from '../lib/query_reader.ts'
import { readSearch } from '../prompts/query.ts'
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
  const reader = createQueryReader(given)
  const margin = reader.read('margin', parseMargin, expectedMargin) ?? defaultMargin
  const base = reader.read('base', parseId, expectedId)
  const head = reader.read('head', parseId, expectedId)
  if (head !== null && !given.has('base')) reader.addProblem('base', 'must be given, as head is')
  if (base !== null && !given.has('head')) reader.addProblem('head', 'must be given, as base is')
  if (base !== null && base === head) reader.addProblem('head', 'must be another change than base')
  const filters = readEntryFilters(given, reader, liveActions)
  const pair = base !== null && head !== null ? { base, head } : null
  for (const name of pair ? Object.keys(writeEntryFilters(filters)) : []) {
    reader.addProblem(name, 'must not be given with base and head')
  }
  reader.requireValid()
  // Two changes are one page.
  return { ...readNumberedPage(pair ? new URLSearchParams() : given), ...filters, margin, pair }
}

/** The prompts that a caller wants to see with what their live changes did. */
export type OverviewQuery = { margin: number; search: string | null; sort: Sort | null; page: PageRequest }

export function parseOverviewQuery(given: URLSearchParams): OverviewQuery {
  const reader = createQueryReader(given)
  const margin = reader.read('margin', parseMargin, expectedMargin) ?? defaultMargin
  const search = readSearch(reader)
  const sort = reader.read('sort', (text) => sorts.find((one) => one === text), `one of ${sorts.join(', ')}`)
  reader.requireValid()
  return { margin, search, sort, page: readPageRequest(given) }
}

const parseMargin = (text: string): number | undefined => (/^(0|0?\.\d{1,6})$/.test(text) ? Number(text) : undefined)

const parseId = (text: string): number | undefined => (/^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined)
