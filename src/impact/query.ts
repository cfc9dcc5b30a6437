import { type Detail, invalid } from '../errors.ts'
import { type NumberedPage, readNumberedPage } from '../lib/numbered_page.ts'
import { defaultMargin } from './schema.ts'

/** What is said of a margin that is none. */
export const expectedMargin = 'must be a number from 0 to less than 1, as 0.05, and given once'

/** The part of the changes of a prompt that a caller requests: a page, or two to be compared. */
export type ImpactQuery = NumberedPage & { margin: number; pair: Pair | null }

/** The ids of two history entries. */
export type Pair = { base: number; head: number }

/** Parses the query. Nothing is taken for what it is not: a parameter that makes no sense is rejected by its name. */
export function parseImpactQuery(given: URLSearchParams): ImpactQuery {
  const problems: Detail[] = []
  const margin = parseMargin(given, problems)
  const base = parseId(given, 'base', problems)
  const head = parseId(given, 'head', problems)
  if (base === null && head !== null) problems.push({ path: 'base', message: 'must be given, as head is' })
  if (head === null && base !== null) problems.push({ path: 'head', message: 'must be given, as base is' })
  if (base && base === head) problems.push({ path: 'head', message: 'must be another change than base' })
  if (problems.length > 0) throw invalid('The query is not valid.', problems)
  // Two changes are one page.
  return base && head
    ? { ...readNumberedPage(new URLSearchParams()), margin, pair: { base, head } }
    : { ...readNumberedPage(given), margin, pair: null }
}

/** Parses the margin of a query that has nothing else of the kind. */
export function readMargin(given: URLSearchParams): number {
  const problems: Detail[] = []
  const margin = parseMargin(given, problems)
  if (problems.length > 0) throw invalid('The query is not valid.', problems)
  return margin
}

function parseMargin(given: URLSearchParams, problems: Detail[]): number {
  const [text, ...others] = given.getAll('margin')
  if (text === undefined) return defaultMargin
  // Rates have six digits, and so has what they are compared with.
  const isMargin = others.length === 0 && /^(0|0?\.\d{1,6})$/.test(text)
  if (!isMargin) problems.push({ path: 'margin', message: expectedMargin })
  return Number(text)
}

/** Null when it is not given, 0 when it makes no sense. */
function parseId(given: URLSearchParams, name: string, problems: Detail[]): number | null {
  const [text, ...others] = given.getAll(name)
  if (text === undefined) return null
  if (others.length === 0 && /^[1-9]\d{0,14}$/.test(text)) return Number(text)
  problems.push({ path: name, message: 'must be the id of a history entry, and given once' })
  return 0
}
