import { type NumberedPage, readNumberedPage } from '../lib/numbered_page.ts'
import { createQueryReader } from '../lib/query_reader.ts'
import { defaultMargin } from './schema.ts'

/** The part of the changes of a prompt that a caller requests: a page, or two to be compared. */
export type ImpactQuery = NumberedPage & { margin: number; pair: Pair | null }

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
  reader.requireValid()
  // Two changes are one page.
  return base !== null && head !== null
    ? { ...readNumberedPage(new URLSearchParams()), margin, pair: { base, head } }
    : { ...readNumberedPage(given), margin, pair: null }
}

/** The margin of a query that has nothing else of the kind. */
export function readMargin(given: URLSearchParams): number {
  const reader = createQueryReader(given)
  const margin = reader.read('margin', parseMargin, expectedMargin) ?? defaultMargin
  reader.requireValid()
  return margin
}

const parseMargin = (text: string): number | undefined => (/^(0|0?\.\d{1,6})$/.test(text) ? Number(text) : undefined)

const parseId = (text: string): number | undefined => (/^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined)
